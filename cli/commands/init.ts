import type { Command } from 'commander';
import { readMigrations } from '../../db/migrate.ts';
import { createPool } from '../../db/pool.ts';
import { setUpDatabase } from '../../db/wait.ts';
import { bootstrap } from '../../tenancy/bootstrap.ts';
import { CommandError, remark, say, sayJson, withUrl } from '../context.ts';

export function initCommand(program: Command): void {
  program
    .command('migrate')
    .description('Apply all missing migrations to the database.')
    .action(() =>
      withUrl(async (_url, _config, database) => {
        const { wall } = await setUpDatabase(database, remark);
        say(`The database is up to date (${readMigrations().length} migrations).`);
        if (!wall.up) remark(`second wall off: ${wall.reason}. \`npx sluice doctor\` shows what puts it up.`);
      }),
    );

  program
    .command('init')
    .description(
      'Set up an empty database: create the schema, the first organization, project, user and keys. Prints the keys as JSON, once.',
    )
    .option('--organization <name>', 'name of the organization', 'My organization')
    .option('--email <address>', 'e-mail address of the first user', 'admin@localhost')
    .option('--name <first name>', 'first name of the first user', 'Admin')
    .action((options: { organization: string; email: string; name: string }) =>
      withUrl(async (url, _config, database) => {
        await setUpDatabase(database, remark);
        const pool = createPool({ url, size: 2, name: 'cli' });
        try {
          const created = await bootstrap(pool, {
            organizationName: options.organization,
            email: options.email,
            firstName: options.name,
          });
          if (!created) {
            throw new CommandError(
              'This installation already has an organization. Use `npx sluice user create` and `npx sluice key create`.',
            );
          }
          sayJson(created, 2);
        } finally {
          await pool.end();
        }
      }),
    );
}
