import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { PlainError } from '../values/plain-error.ts';
import type { CommandFile, LoadProducts } from './command-file.ts';
import { remark, UsageError } from './context.ts';

/** All commands, in the order of the help. */
export const COMMANDS: readonly CommandFile[] = [
  { names: ['migrate', 'init'], load: async () => (await import('./commands/init.ts')).initCommand },
  { names: ['user'], load: async () => (await import('./commands/user.ts')).userCommands },
  { names: ['key'], load: async () => (await import('./commands/key.ts')).keyCommands },
  { names: ['keys'], load: async () => (await import('./commands/keys.ts')).keysCommand },
  { names: ['doctor'], load: async () => (await import('./commands/doctor.ts')).doctorCommand },
  { names: ['backup', 'restore'], load: async () => (await import('./commands/backup.ts')).backupCommands },
  { names: ['exports'], load: async () => (await import('./commands/exports.ts')).exportsCommand },
  { names: ['verify'], load: async () => (await import('./commands/verify.ts')).verifyCommand },
  { names: ['functions'], load: async () => (await import('./commands/functions.ts')).functionsCommand },
  { names: ['flags'], load: async () => (await import('./commands/flags.ts')).flagsCommand },
  { names: ['query'], load: async () => (await import('./commands/query.ts')).queryCommand },
  { names: ['sql-access'], load: async () => (await import('./commands/sql-access.ts')).sqlAccessCommands },
];

const loadProducts: LoadProducts = async () => (await import('../products.ts')).PRODUCTS;

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

/** The program with the commands that the first argument calls. If it calls none, the program has all. */
export async function buildProgram(
  called: string | undefined,
  files: readonly CommandFile[] = COMMANDS,
  products: LoadProducts = loadProducts,
): Promise<Command> {
  const program = new Command('sluice')
    .version(version)
    .description('Administration of a Sluice installation.')
    // Options after the name of a command are the command's.
    .enablePositionalOptions()
    .addHelpText(
      'after',
      '\nCommands use the database at DATABASE_URL. If it is not set, they use the embedded Postgres in the\n' +
        'data directory (SLUICE_DATA_DIR), and start it for the command if `npm start` is not running.',
    );
  const wanted = files.filter(({ names }) => called !== undefined && names.includes(called));
  for (const { load } of wanted.length > 0 ? wanted : files) (await load())(program, products);
  return program;
}

/**
 * Does what the command line says. A problem that is explained ends the process with one sentence and exit code 1, or 2 if
 * the command is called in a wrong way.
 */
export async function runProgram(program: Command): Promise<void> {
  try {
    await program.parseAsync();
  } catch (error) {
    if (!(error instanceof PlainError)) throw error;
    remark(`error: ${error.message}`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}
