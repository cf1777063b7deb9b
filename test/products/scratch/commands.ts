import type { Command } from 'commander';
import { CommandError, say, withPool } from '../../../cli/context.ts';
import { parseKeyring } from '../../../secrets/envelope.ts';
import { OPERATOR } from '../../../tenancy/actor.ts';
import { createNote } from './create-note.ts';

export function scratchCommands(program: Command): void {
  program
    .command('note <project> <text>')
    .description('Make a note in a project.')
    .action((project: string, text: string) =>
      withPool(async (pool, config) => {
        const keys = config.SLUICE_ENCRYPTION_KEYS;
        if (!keys) throw new CommandError('SLUICE_ENCRYPTION_KEYS is not set.');
        const made = await createNote({ pool, keyring: parseKeyring(keys) }, OPERATOR, Number(project), {
          text,
        });
        say(`Made the note ${made.id}.`);
      }),
    );
}
