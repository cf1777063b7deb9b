import type { Command } from 'commander';
import type { ListedSqlLogin } from '../../db/sql-logins.ts';
import { OPERATOR } from '../../tenancy/actor.ts';
import { grantSqlAccess, listSqlAccess, revokeSqlAccess } from '../../tenancy/sql-access.ts';
import { CommandError, remark, say, withUrl } from '../context.ts';

const CONNECTIONS = '5';

function projectOf(given: string): number {
  if (!/^\d{1,9}$/.test(given)) throw new CommandError(`"${given}" is not the id of a project.`);
  return Number(given);
}

/** The embedded Postgres may run at another port for the duration of the command. 0: it always does. */
function atPort(url: string, port: number): string {
  const address = new URL(url);
  if (port !== 0) address.port = String(port);
  return address.href;
}

/** The lines that people type into a client which takes no URL. */
function fieldsOf(url: string): string[] {
  const { hostname, port, pathname, username, password } = new URL(url);
  return [
    `Host: ${hostname}  Port: ${port || '5432'}  Database: ${decodeURIComponent(pathname.slice(1))}`,
    `User: ${decodeURIComponent(username)}  Password: ${decodeURIComponent(password)}`,
  ];
}

function stateOf({ closed_at, project, is_ours, exists, connections }: ListedSqlLogin): string {
  if (closed_at !== null || project === null) return 'sees nothing, and is to be dropped';
  if (!is_ours || !exists) return 'no login: this database is restored or a copy; grant it again';
  return `${connections} connections at most`;
}

export function sqlAccessCommands(program: Command): void {
  const command = program
    .command('sql-access')
    .description('Let people read one project with a SQL client, such as psql or DBeaver.');

  command
    .command('grant <project>')
    .description(
      'Make the login of a project, or give it another password and end its sessions. Prints the URL for a SQL client. ' +
        'Sluice cannot show the password again.',
    )
    .option('--connections <number>', 'how many connections the login may have at once', CONNECTIONS)
    .option(
      '--despite-functions',
      'go on where a login may call functions that stop the installation, because only a superuser can take them away',
      false,
    )
    .action((project: string, options: { connections: string; despiteFunctions: boolean }) =>
      withUrl(async (_url, config, database) => {
        const granted = await grantSqlAccess(database, OPERATOR, {
          projectId: projectOf(project),
          connections: Number(options.connections),
          despiteFunctions: options.despiteFunctions,
        });
        const { role, isRenewed } = granted;
        const url = config.DATABASE_URL ? granted.url : atPort(granted.url, config.SLUICE_POSTGRES_PORT);
        remark(
          `${isRenewed ? 'New password for the' : 'The'} login ${role} of project ${project}. Store it now, Sluice cannot show it again:`,
        );
        for (const line of fieldsOf(url)) remark(`  ${line}`);
        say(url);
      }),
    );

  command
    .command('list')
    .description('List the logins, and drop those of deleted projects.')
    .action(() =>
      withUrl(async (_url, _config, database) => {
        for (const login of await listSqlAccess(database)) {
          say(`${login.project_id}  ${login.project ?? '(deleted)'}  ${login.role}  ${stateOf(login)}`);
        }
      }),
    );

  command
    .command('revoke <project>')
    .description(
      'Take the login of a project away: it sees nothing at once, its sessions end, and its role is dropped.',
    )
    .action((project: string) =>
      withUrl(async (_url, _config, database) => {
        if (!(await revokeSqlAccess(database, OPERATOR, projectOf(project)))) {
          throw new CommandError(`Project ${project} has no login.`);
        }
        say(`Revoked the SQL access of project ${project}.`);
      }),
    );
}
