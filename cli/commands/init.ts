import type { Command } from 'commander';
import { migrate } from '../../db/migrate.ts';
import { createPool } from '../../db/pool.ts';
import { bootstrap } from '../../tenancy/bootstrap.ts';
import { CommandError, remark, say, withUrl } from '../context.ts';

export function initCommand(program: Command): void {
  program
    .command('migrate')
    .description('Apply all missing migrations to the database.')
    .action(() =>
      withUrl(async (url) => {
        const { applied } = await migrate(url, { log: remark });
        say(`The database is up to date (${applied} migrations).`);
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
      withUrl(async (url) => {
        await migrate(url, { log: remark });
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
          say(JSON.stringify(created, null, 2));
        } finally {
          await pool.end();
        }
      }),
    );
}
