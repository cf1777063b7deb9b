import type pg from 'pg';
import type { Queryable } from '../db/pool.ts';
import { lockProject } from '../db/projects.ts';
import { type GivenAddresses, withLogin } from '../db/roles/address.ts';
import { dropClosedLogins } from '../db/roles/keep-sql-access.ts';
import { type Administration, administer } from '../db/roles/roles.ts';
import {
  endSessions,
  missingForLogins,
  newLoginName,
  newPassword,
  openForLogins,
  putLoginRole,
  SqlAccessError,
} from '../db/roles/sql-access.ts';
import {
  closeSqlLogins,
  findSqlLogin,
  type ListedSqlLogin,
  listSqlLogins,
  putSqlLogin,
} from '../db/sql-logins.ts';
import type { Actor } from './actor.ts';
import { audit } from './audit.ts';
import type { Finding } from './product.ts';

const MOST_CONNECTIONS = 50;

export interface SqlGrant {
  projectId: number;
  /** How many connections the login may have at once. */
  connections: number;
  /** Whether to go on where a login could call functions that only a superuser can take away. */
  despiteFunctions: boolean;
}

export interface GrantedLogin {
  role: string;
  /** For a SQL client. It contains the password, which nobody can show again. */
  url: string;
  /** Whether the project had the login before. Then its old password has ended. */
  isRenewed: boolean;
}

/** Gives a project a login, or gives its login another password. */
export const grantSqlAccess = (given: GivenAddresses, actor: Actor, grant: SqlGrant): Promise<GrantedLogin> =>
  administer(given, async ({ client, roles, wall }) => {
    const { projectId, connections } = grant;
    if (!Number.isInteger(connections) || connections < 1 || connections > MOST_CONNECTIONS) {
      throw new SqlAccessError(`A login has 1 to ${MOST_CONNECTIONS} connections.`);
    }
    const refuseUnknown = async () => {
      if (await lockProject(client, projectId)) return;
      throw new SqlAccessError(`There is no project with the id ${projectId}.`);
    };
    await refuseUnknown();
    requireWall(wall, grant.despiteFunctions);
    await requireMaker(client);
    await openForLogins(client, roles);
    await dropClosedLogins(client);
    const found = await findSqlLogin(client, projectId);
    const password = newPassword();
    const role = found?.role ?? newLoginName(projectId);
    await together(client, async () => {
      // The project may be deleted at this moment.
      await refuseUnknown();
      await putLoginRole(client, roles, { role, password, connections });
      await putSqlLogin(client, { role, project_id: projectId, connections });
      await audit(client, actor, {
        scope: 'SqlAccess',
        itemId: role,
        activity: found ? 'rolled' : 'created',
        projectId,
        detail: { connections },
      });
    });
    // Whoever is connected gave the old password.
    if (found) await endSessions(client, role);
    return { role, url: clientUrl(given, role, password), isRenewed: found !== undefined };
  });

/** Takes the login of a project away. Answers false if it has none. */
export const revokeSqlAccess = (given: GivenAddresses, actor: Actor, projectId: number): Promise<boolean> =>
  administer(given, async ({ client }) => {
    const found = await findSqlLogin(client, projectId);
    await together(client, async () => {
      await closeSqlLogins(client, projectId);
      if (found)
        await audit(client, actor, {
          scope: 'SqlAccess',
          itemId: found.role,
          activity: 'deleted',
          projectId,
        });
    });
    await dropClosedLogins(client);
    return found !== undefined;
  });

/** Lists the logins, and drops those whose project was deleted. */
export const listSqlAccess = (given: GivenAddresses): Promise<ListedSqlLogin[]> =>
  administer(given, async ({ client }) => {
    await dropClosedLogins(client);
    return listSqlLogins(client);
  });

/** Says for `doctor` whether the logins are there, and whether what keeps each within its project stands. Changes nothing. */
export async function diagnoseSqlAccess(given: GivenAddresses): Promise<Finding> {
  const check = 'SQL logins';
  const finding = (ok: boolean, sentence: string): Finding => ({ check, ok, sentence });
  return administer(given, async ({ client, roles }) => {
    const logins = await listSqlLogins(client);
    const ours = logins.filter((one) => one.is_ours && one.closed_at === null);
    const closed = logins.filter((one) => one.is_ours && one.closed_at !== null && one.exists);
    const left =
      closed.length === 0
        ? ''
        : ` Roles that see nothing any more are still there: ${closed.map((one) => one.role).join(', ')}. \`npx sluice sql-access list\` drops them.`;
    if (ours.length === 0) return finding(true, `No project has a login for SQL clients now.${left}`);
    const gone = ours.filter((one) => !one.exists);
    if (gone.length > 0) {
      const named = gone.map((one) => `${one.role} of project ${one.project_id}`).join(', ');
      return finding(
        false,
        `Postgres has no role ${named}. \`npx sluice sql-access grant PROJECT\` makes it again, with another password; \`revoke PROJECT\` forgets it.`,
      );
    }
    const wrong = await missingForLogins(client, roles).catch((error: unknown) => {
      if (error instanceof SqlAccessError) return error;
      throw error;
    });
    if (wrong instanceof SqlAccessError) return finding(false, wrong.message);
    if (wrong.length > 0) {
      return finding(
        false,
        `What keeps logins within their project is not as it should be. Restart Sluice, or run this as ${roles.owner} or a superuser:\n${wrong.join(';\n')};`,
      );
    }
    const many = ours.length === 1 ? '1 project has a login' : `${ours.length} projects have a login`;
    return finding(true, `${many} for SQL clients, and the policies let each see its project only.${left}`);
  }).catch((error: unknown) => {
    if (error instanceof SqlAccessError) return finding(false, error.message);
    throw error;
  });
}

function requireWall(wall: Administration['wall'], despiteFunctions: boolean): void {
  if (!wall.up) {
    throw new SqlAccessError(
      `The second wall is off: ${wall.reason}. \`npx sluice doctor\` shows what to do.`,
    );
  }
  if (wall.sql === '' || despiteFunctions) return;
  throw new SqlAccessError(
    'A login could call functions with which it stops capture, such as pg_advisory_lock. A superuser takes them away:\n\n' +
      `${wall.sql}\nWhere nobody can be a superuser, \`--despite-functions\` goes on. Then a login still reads its project only, but ` +
      'its user can stop the installation.',
  );
}

/** Refuses a user who may not make roles. */
async function requireMaker(client: Queryable): Promise<void> {
  const { rows } = await client.query(
    `select quote_ident(rolname) as name, rolsuper or rolcreaterole as may from pg_roles where rolname = current_user`,
  );
  const { name, may } = rows[0];
  if (may) return;
  throw new SqlAccessError(
    `The user ${name} may not make roles. Run this as a superuser, and then this command again: alter role ${name} createrole;\n` +
      'Or run this command with SLUICE_OWNER_DATABASE_URL set to the address of a user who may make roles and owns the tables.',
  );
}

async function together(client: pg.Client, work: () => Promise<void>): Promise<void> {
  await client.query('begin');
  try {
    await work();
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/** The URL for a client: the address that Sluice itself uses, without what only its own driver understands. */
function clientUrl({ url, ownerUrl }: GivenAddresses, role: string, password: string): string {
  const address = new URL(withLogin(ownerUrl ?? url, role, password));
  for (const name of [...address.searchParams.keys()])
    if (name !== 'sslmode') address.searchParams.delete(name);
  return address.href;
}
