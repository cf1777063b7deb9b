import type { Command } from 'commander';
import { migrate } from '../../db/migrate.ts';
import { createPool } from '../../db/pool.ts';
import { bootstrap } from '../../tenancy/bootstrap.ts';
import { CommandError, remark, say, withUrl } from '../context.ts';

export function initCommand(program: Command): void {
  program
    .command('migrate')
    .description('Apply missing migrations to the database.')
    .action(() =>
      withUrl(async (url) => {
        const { applied } = await migrate(url, { log: remark });
        say(`The database is up to date (${applied} migrations).`);
      }),
    );

  program
    .command('init')
    .description(
      'Set up an empty database: schema, first organization, project, user and keys (printed once).',
    )
    .option('--organization <name>', 'name of the organization', 'My organization')
    .option('--email <address>', "the first user's e-mail address", 'admin@localhost')
    .option('--name <first name>', "the first user's first name", 'Admin')
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
              'This installation has an organization already. Use `npx sluice user create` and `npx sluice key create`.',
            );
          }
          say(JSON.stringify(created, null, 2));
        } finally {
          await pool.end();
        }
      }),
    );
}
