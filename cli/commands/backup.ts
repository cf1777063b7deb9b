import type { Command } from 'commander';
import { backUp } from '../../backup/backup.ts';
import { restore } from '../../backup/restore.ts';
import { ensureRoles } from '../../db/roles/roles.ts';
import { sealedColumns } from '../../tenancy/product.ts';
import type { LoadProducts } from '../command-file.ts';
import { encryptionKeyIds, keyPlace, remark, say, withUrl } from '../context.ts';

export function backupCommands(program: Command, products: LoadProducts): void {
  program
    .command('backup <directory>')
    .description('Write a consistent copy of the whole database into a new directory.')
    .action((directory: string) =>
      withUrl(async (url, config) => {
        const manifest = await backUp({
          url,
          directory,
          sealed: sealedColumns(await products()),
          report: remark,
        });
        const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
        say(`Backed up ${rows} rows of ${manifest.tables.length} tables to ${directory}.`);
        remark(
          'The backup does not contain the encryption keys. Keep a copy of them in another place: ' +
            keyPlace(config).name,
        );
      }),
    );

  program
    .command('restore <directory>')
    .description(
      'Restore a backup into an empty database. Sluice then creates the Temporal schedules on its own.',
    )
    .action((directory: string) =>
      withUrl(async (url, config, database) => {
        const manifest = await restore({
          url,
          directory,
          encryptionKeyIds: encryptionKeyIds(config),
          restored: (await products()).flatMap(({ restored }) => (restored ? [restored] : [])),
          report: remark,
        });
        await ensureRoles(database);
        const rows = manifest.tables.reduce((sum, table) => sum + table.rows, 0);
        say(`Restored ${rows} rows of ${manifest.tables.length} tables, as of ${manifest.created_at}.`);
      }),
    );
}
