import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { BackupError } from '../backup/manifest.ts';
import { ConfigError } from '../config.ts';
import { MigrationError } from '../db/migrate.ts';
import { RoleError } from '../db/roles/roles.ts';
import { SqlAccessError } from '../db/roles/sql-access.ts';
import { PRODUCTS } from '../products.ts';
import { Refusal } from '../refusals.ts';
import { SecretError } from '../secrets/envelope.ts';
import { StackProblem } from '../stack/problem.ts';
import { KeyError } from '../tenancy/encryption-keys.ts';
import type { Product } from '../tenancy/product.ts';
import { backupCommands } from './commands/backup.ts';
import { doctorCommand } from './commands/doctor.ts';
import { exportsCommand } from './commands/exports.ts';
import { flagsCommand } from './commands/flags.ts';
import { functionsCommand } from './commands/functions.ts';
import { initCommand } from './commands/init.ts';
import { keyCommands } from './commands/key.ts';
import { keysCommand } from './commands/keys.ts';
import { queryCommand } from './commands/query.ts';
import { sqlAccessCommands } from './commands/sql-access.ts';
import { userCommands } from './commands/user.ts';
import { verifyCommand } from './commands/verify.ts';
import { CommandError, remark, UsageError } from './context.ts';

/** Adds commands to the program. */
export type Commands = (program: Command, products: readonly Product[]) => void;

/** All commands, in the order of the help. */
export const COMMANDS: readonly Commands[] = [
  initCommand,
  userCommands,
  keyCommands,
  keysCommand,
  doctorCommand,
  backupCommands,
  exportsCommand,
  verifyCommand,
  functionsCommand,
  flagsCommand,
  queryCommand,
  sqlAccessCommands,
];

const EXPLAINED = [
  CommandError,
  ConfigError,
  KeyError,
  BackupError,
  MigrationError,
  Refusal,
  RoleError,
  SecretError,
  SqlAccessError,
  StackProblem,
];

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));

export function buildProgram(
  commands: readonly Commands[] = COMMANDS,
  products: readonly Product[] = PRODUCTS,
): Command {
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
  for (const addCommands of commands) addCommands(program, products);
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
    if (!EXPLAINED.some((type) => error instanceof type)) throw error;
    remark(`error: ${(error as Error).message}`);
    process.exitCode = error instanceof UsageError ? 2 : 1;
  }
}
