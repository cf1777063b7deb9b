import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { PlainError } from '../../values/plain-error.ts';
import { LOCKS } from '../locks.ts';
import { isDatabaseUnavailable } from '../pool.ts';
import { type GivenAddresses, withLogin } from './address.ts';
import {
  type MissingStatements,
  missingStatements,
  ownerOf,
  passwordStatements,
  type RolePlan,
} from './plan.ts';
import { READABLE } from './readable.ts';
import { SqlAccessError, type SqlRoles } from './sql-access.ts';

/** Whether what is compiled from texts of users runs as a role that Postgres shows one project only. */
export type SecondWall =
  | {
      up: true;
      /** Takes functions from the reader that it does not need. Only a superuser can do so. Empty: it has none. */
      sql: string;
    }
  | {
      up: false;
      reason: string;
      /** Puts the wall up when a superuser runs it. Empty: something else is missing. */
      sql: string;
    };

/** The addresses that processes use. */
export interface DatabaseRoles {
  /** For statements of our own. */
  server: string;
  /** For what is compiled from texts of users. Without the second wall, the same as `server`. */
  reader: string;
  wall: SecondWall;
}

/** An address that the operator gave cannot be used. The message says why. */
export class RoleError extends PlainError {
  override readonly name = 'RoleError';
}

interface Known extends RolePlan {
  database: string;
}

/**
 * Makes the roles of the database and gives them their rights, where the user may do so. Otherwise reports what is
 * missing. Any number of processes may call this at once, each time they start.
 */
export const ensureRoles = (given: GivenAddresses): Promise<DatabaseRoles> => withRoles(given, true);

/** Finds the roles of the database without changing anything. */
export const findRoles = (given: GivenAddresses): Promise<DatabaseRoles> => withRoles(given, false);

async function withRoles(given: GivenAddresses, mayChange: boolean): Promise<DatabaseRoles> {
  const { url, ownerUrl, readerUrl } = given;
  return connected(ownerUrl ?? url, async (client) => {
    const plan = await planFor(client, given);
    if (typeof plan === 'string') {
      await refuseBlindServer(url);
      return down(url, plan, '');
    }
    if (mayChange) await client.query('select pg_advisory_lock($1)', [LOCKS.roles]);
    const { missing, failure } = mayChange
      ? await makeUp(client, plan)
      : { missing: await missingStatements(client, plan), failure: undefined };
    await refuseBlindServer(url);
    if (missing.wall.length > 0) {
      const reason = failure ?? 'its roles and rights are not complete';
      return down(url, reason, script(plan.database, missing));
    }
    const addresses = addressesOf(given, plan);
    const refused = await refusalOfLogins(client, plan, addresses, mayChange);
    if (refused !== undefined) {
      if (readerUrl) throw new RoleError(`SLUICE_READER_DATABASE_URL cannot be used: ${refused}.`);
      return down(url, refused, '');
    }
    return { ...addresses, wall: { up: true, sql: script(plan.database, { ...missing, wall: [] }) } };
  });
}

const down = (url: string, reason: string, sql: string): DatabaseRoles => ({
  server: url,
  reader: url,
  wall: { up: false, reason, sql },
});

/** Runs work on a connection of its own. */
export async function connected<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'sluice-roles',
    connectionTimeoutMillis: 5_000,
  });
  client.on('error', () => {
    // The running query fails with the same error.
  });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const userOf = async (client: pg.Client): Promise<string> =>
  (await client.query('select current_user as name')).rows[0].name;

/**
 * Refuses a server that row-level security holds. It would see no events, and could store none. This happens where
 * other users than the owner of the tables were given rights on them.
 */
async function refuseBlindServer(url: string): Promise<void> {
  await connected(url, async (client) => {
    const { rows } = await client.query(
      `select row_security_active('events') as blind, current_user as name,
         pg_get_userbyid(relowner) as owner from pg_class where oid = 'events'::regclass`,
    );
    const { blind, name, owner } = rows[0];
    if (!blind) return;
    const grant = `grant ${pg.escapeIdentifier(owner)} to ${pg.escapeIdentifier(name)} with inherit true, set true`;
    throw new RoleError(
      `Row-level security hides all events from the user ${name} of DATABASE_URL, because the tables belong to ${owner}. ` +
        `Run this as a superuser: ${grant}`,
    );
  });
}

interface RolesRow {
  tag: string;
  server_password: string;
  reader_password: string;
}

/** Returns what the roles should be, or why nobody can know. */
async function planFor(client: pg.Client, given: GivenAddresses): Promise<Known | string> {
  const maker = await userOf(client);
  const { rows: databases } = await client.query('select current_database() as name');
  const database = databases[0].name;
  const login = given.ownerUrl ? await connected(given.url, userOf) : maker;
  if (given.readerUrl) {
    const owner = await ownerOf(client, 'migrations');
    const reader = await connected(given.readerUrl, (asked) => requireWeak(asked, owner)).catch((error) => {
      if (isDatabaseUnavailable(error)) throw error;
      throw new RoleError(`SLUICE_READER_DATABASE_URL cannot be used: ${(error as Error).message}.`);
    });
    return { database, owner, reader, logins: [...new Set([maker, login])] };
  }
  const { rows } = await client
    .query<RolesRow>('select tag, server_password, reader_password from database_roles')
    .catch((error) => {
      if (isDatabaseUnavailable(error)) throw error;
      return { rows: [] };
    });
  const [row] = rows;
  if (!row) return `the user ${maker} cannot read the table database_roles`;
  const name = (part: string) => `sluice_${row.tag}_${part}`;
  return {
    database,
    owner: name('owner'),
    reader: name('reader'),
    logins: [...new Set([maker, login])],
    own: {
      server: name('server'),
      serverPassword: row.server_password,
      readerPassword: row.reader_password,
    },
  };
}

/** Returns the user of a connection. Refuses a user whom row-level security does not hold. */
async function requireWeak(client: pg.Client, owner: string): Promise<string> {
  const { rows } = await client.query(
    `select current_user as name, rolsuper or rolbypassrls or pg_has_role(oid, $1, 'member') as mighty
     from pg_roles where rolname = current_user`,
    [owner],
  );
  const { name, mighty } = rows[0];
  if (mighty) throw new Error(`row-level security does not hold for the user ${name}`);
  return name;
}

async function isSuperuser(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query('select rolsuper from pg_roles where rolname = current_user');
  return rows[0].rolsuper;
}

function addressesOf({ url, ownerUrl, readerUrl }: GivenAddresses, { reader, own }: RolePlan) {
  if (!own) return { server: url, reader: readerUrl as string };
  return {
    // An operator who names an owner has chosen the user of DATABASE_URL for the server.
    server: ownerUrl ? url : withLogin(url, own.server, own.serverPassword),
    reader: withLogin(url, reader, own.readerPassword),
  };
}

/** A connection of the user who administers the database, and what is known of its roles. */
export interface Administration {
  client: pg.Client;
  roles: SqlRoles;
  wall: SecondWall;
}

/**
 * Runs work on a connection of the user who applies migrations and makes roles. One process at a time does so. The work gets
 * the roles as they are, and does not get to run while there is no reader.
 */
export async function administer<T>(
  given: GivenAddresses,
  work: (administration: Administration) => Promise<T>,
): Promise<T> {
  const { wall } = await findRoles(given);
  return connected(given.ownerUrl ?? given.url, async (client) => {
    const plan = await planFor(client, given);
    if (typeof plan === 'string')
      throw new SqlAccessError(`The roles of the database are not known: ${plan}.`);
    const { rows } = await client.query('select tag from database_roles');
    await client.query('select pg_advisory_lock($1)', [LOCKS.roles]);
    const { owner, reader } = plan;
    return work({ client, wall, roles: { owner, reader, group: `sluice_${rows[0].tag}_sql` } });
  });
}

/** How often the statements are tried, because another database of this server can share the roles. */
const TRIES = 5;

/** Runs the missing statements, all of them or none. Returns those that are missing then, and why. */
async function makeUp(
  client: pg.Client,
  plan: RolePlan,
): Promise<{ missing: MissingStatements; failure: string | undefined }> {
  let failure: string | undefined;
  for (let tries = 1; tries <= TRIES; tries += 1) {
    failure = await tryStatements(client, plan);
    if (failure === undefined) break;
    await pause(20 * tries);
  }
  if (failure === undefined && (await isSuperuser(client))) {
    const { closing } = await missingStatements(client, plan);
    await runAll(client, closing);
  }
  return { missing: await missingStatements(client, plan), failure };
}

/** How often what is missing is looked up again. Taking one right away can show that another one is missing. */
const ROUNDS = 4;

async function tryStatements(client: pg.Client, plan: RolePlan): Promise<string | undefined> {
  try {
    await together(client, async () => {
      for (let round = 1; ; round += 1) {
        const { wall } = await missingStatements(client, plan);
        if (wall.length === 0) return;
        // Postgres only warns of rights that this user may not give or take.
        if (round > ROUNDS) throw new Error(`this user may not: ${wall[0]?.split('\n')[0]}`);
        for (const statement of wall) await client.query(statement);
      }
    });
    return undefined;
  } catch (error) {
    if (isDatabaseUnavailable(error)) throw error;
    return (error as Error).message;
  }
}

/** Runs work in a transaction. */
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

const runAll = (client: pg.Client, statements: string[]): Promise<void> =>
  together(client, async () => {
    for (const statement of statements) await client.query(statement);
  });

/** The state of a login that Postgres refuses: the password, or the role itself. */
const WRONG_LOGIN = /^28/;

/** Returns why the logins cannot be used. Gives them their passwords again where somebody changed these. */
async function refusalOfLogins(
  client: pg.Client,
  plan: RolePlan,
  addresses: { server: string; reader: string },
  mayChange: boolean,
): Promise<string | undefined> {
  try {
    await tryLogins(addresses);
    return undefined;
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    if (isDatabaseUnavailable(error)) throw error;
    if (!plan.own || !mayChange || !WRONG_LOGIN.test(code ?? '')) return message;
  }
  try {
    await runAll(client, passwordStatements(plan));
    await tryLogins(addresses);
    return undefined;
  } catch (error) {
    if (isDatabaseUnavailable(error)) throw error;
    return (error as Error).message;
  }
}

async function tryLogins({ server, reader }: { server: string; reader: string }): Promise<void> {
  await connected(server, userOf);
  await connected(reader, async (client) => {
    const { rows } = await client.query(
      `select current_user as name, bool_and(row_security_active(c.oid)) as held
       from pg_class c where c.relnamespace = 'public'::regnamespace and c.relname = any($1) and c.relkind <> 'v'`,
      [READABLE],
    );
    const { name, held } = rows[0];
    if (!held) throw new Error(`row-level security does not hold for the user ${name}`);
  });
}

/** Returns SQL for a superuser to copy and paste. */
function script(database: string, { wall, closing }: MissingStatements): string {
  const lines = (statements: string[]) => statements.map((one) => `${one};`).join('\n');
  const head = `-- Run this as a superuser in the database ${database}.\n`;
  const first = wall.length > 0 ? `begin;\n${lines(wall)}\ncommit;\n` : '';
  const second = closing.length > 0 ? `begin;\n${lines(closing)}\ncommit;\n` : '';
  return first || second ? head + first + second : '';
}
