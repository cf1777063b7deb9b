// `npx sluice`: what an operator does without a web page.
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { BackupError } from '../backup/manifest.ts';
import { ConfigError } from '../config.ts';
import { MigrationError } from '../db/migrate.ts';
import { Refusal } from '../refusals.ts';
import { SecretError } from '../secrets/envelope.ts';
import { StackProblem } from '../stack/problem.ts';
import { backupCommands } from './commands/backup.ts';
import { doctorCommand } from './commands/doctor.ts';
import { exportsCommand } from './commands/exports.ts';
import { initCommand } from './commands/init.ts';
import { keyCommands } from './commands/key.ts';
import { userCommands } from './commands/user.ts';
import { verifyCommand } from './commands/verify.ts';
import { CommandError, remark } from './context.ts';

const EXPLAINED = [
  CommandError,
  ConfigError,
  BackupError,
  MigrationError,
  Refusal,
  SecretError,
  StackProblem,
];

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
const program = new Command('sluice')
  .version(version)
  .description('Administration of a Sluice installation.')
  // Options after the name of a command are the command's.
  .enablePositionalOptions()
  .addHelpText(
    'after',
    '\nCommands work on DATABASE_URL if it is set, else on the embedded Postgres of the data directory\n' +
      '(SLUICE_DATA_DIR), which is started for the command when `npm start` is not running.',
  );
initCommand(program);
userCommands(program);
keyCommands(program);
doctorCommand(program);
backupCommands(program);
exportsCommand(program);
verifyCommand(program);

try {
  await program.parseAsync();
} catch (error) {
  if (!EXPLAINED.some((type) => error instanceof type)) throw error;
  remark(`error: ${(error as Error).message}`);
  process.exitCode = 1;
}
