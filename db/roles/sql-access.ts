import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { PlainError } from '../../values/plain-error.ts';
import type { Queryable } from '../pool.ts';
import { isLockTimeout } from '../pool.ts';
import { EVERYBODY, POLICY } from './plan.ts';
import { scramVerifier } from './scram.ts';

/**
 * The schema of the views that people read with a SQL client. Whatever view is in it, every login may read. The views call
 * no function of ours, so that logins need none, and no search path changes what a view means.
 */
export const SQL_SCHEMA = 'sluice_sql';

/** What the roles for SQL clients have to do with the other roles of a database. */
export interface SqlRoles {
  owner: string;
  /** The role of the second wall. Its policy is no longer for everybody once somebody can log in. */
  reader: string;
  /** Has the rights of all logins. Each login inherits it, and nobody can be it. */
  group: string;
}

/** SQL access cannot be given. The message says why and what to do. */
export class SqlAccessError extends PlainError {
  override readonly name = 'SqlAccessError';
}

const id = pg.escapeIdentifier;
const text = pg.escapeLiteral;

/** By whom a row is seen: by the login whose project it belongs to. No setting has a part in it. */
const OF_LOGIN = `project_id = (
  select l.project_id from public.sql_logins l
  where l.role = current_user and l.closed_at is null
    and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database()))`;

interface Relation {
  name: string;
  wanted: boolean;
  isTable: boolean;
  /** Whether this user may take rights on it away. */
  ours: boolean;
  selects: boolean;
  looks: boolean;
  writes: boolean;
}

/** All relations, and which of them the views need, directly or through other views. */
const RELATIONS = `
  with recursive needed as (
    select c.oid from pg_class c where c.relnamespace = '${SQL_SCHEMA}'::regnamespace and c.relkind = 'v'
    union
    select d.refobjid from needed join pg_rewrite r on r.ev_class = needed.oid
    join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid and d.refclassid = 'pg_class'::regclass)
  select format('%I.%I', n.nspname, c.relname) as name, needed.oid is not null or c.oid = 'sql_logins'::regclass as wanted,
    c.relkind in ('r', 'p') as "isTable", pg_has_role(c.relowner, 'usage') as ours,
    has_table_privilege($1, c.oid, 'select') as selects,
    has_any_column_privilege($1, c.oid, 'select') as looks,
    has_any_column_privilege($1, c.oid, 'insert, update, references')
      or has_table_privilege($1, c.oid, 'insert, update, delete, truncate, references, trigger') as writes
  from pg_class c join pg_namespace n on n.oid = c.relnamespace left join needed on needed.oid = c.oid
  where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  order by 1`;

/**
 * Returns the statements that are missing before anybody can be given a login. The rights come last, so that nobody sees
 * anything while a policy is missing. Each of them can be run alone, and again.
 */
export async function missingForLogins(client: Queryable, roles: SqlRoles): Promise<string[]> {
  const { group } = roles;
  const { rows: found } = await client.query(
    `select rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls or rolcanlogin as mighty
     from pg_roles where rolname = $1`,
    [group],
  );
  const name = found.length > 0 ? group : EVERYBODY;
  const { rows: relations } = await client.query<Relation>(RELATIONS, [name]);
  const { rows: general } = await client.query(
    `select quote_ident(current_database()) as database, has_database_privilege($1, current_database(), 'connect') as connects,
       has_schema_privilege($1, '${SQL_SCHEMA}', 'usage') as usage`,
    [name],
  );
  const { database, connects, usage } = general[0];
  const wanted = relations.filter((one) => one.wanted);
  const forbidden = relations.filter((one) => one.ours && (one.writes || (!one.wanted && one.looks)));
  return [
    ...(found.length === 0 ? [`create role ${id(group)} nologin`] : []),
    ...(found[0]?.mighty
      ? [`alter role ${id(group)} nosuperuser nocreaterole nocreatedb noreplication nobypassrls nologin`]
      : []),
    ...(await missingPolicies(
      client,
      roles,
      wanted.filter((one) => one.isTable),
    )),
    ...(connects ? [] : [`grant connect on database ${database} to ${id(group)}`]),
    ...(usage ? [] : [`grant usage on schema ${SQL_SCHEMA} to ${id(group)}`]),
    ...forbidden.map((one) => `revoke all on ${one.name} from public, ${id(group)}`),
    ...wanted
      .filter((one) => !one.selects || one.writes)
      .map((one) => `grant select on ${one.name} to ${id(group)}`),
  ];
}

interface Policy {
  name: string;
  secured: boolean;
  policy: string | null;
  roles: string[];
  /** The roles that were given the right to read the table themselves. Each may be the reader of some process. */
  readers: string[];
}

/** The policies that let logins see their project. Refuses where another policy would let them see more. */
async function missingPolicies(
  client: Queryable,
  { reader, group }: SqlRoles,
  tables: readonly Relation[],
): Promise<string[]> {
  const { rows } = await client.query<Policy>(
    `select format('%I.%I', n.nspname, c.relname) as name, c.relrowsecurity as secured, p.polname as policy,
       array(select coalesce(r.rolname::text, '${EVERYBODY}') from unnest(p.polroles) as one left join pg_roles r on r.oid = one) as roles,
       array(select distinct r.rolname::text from aclexplode(c.relacl) as given join pg_roles r on r.oid = given.grantee
         where given.privilege_type = 'SELECT' and r.oid <> c.relowner) as readers
     from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_policy p on p.polrelid = c.oid and p.polpermissive
     where format('%I.%I', n.nspname, c.relname) = any($1) order by 1, 3`,
    [tables.map((one) => one.name)],
  );
  const statements: string[] = [];
  for (const { name } of tables) {
    const policies = rows.filter((one) => one.name === name);
    if (!policies[0]?.secured) statements.push(`alter table ${name} enable row level security`);
    for (const { policy, roles, readers } of policies) {
      const isOpen = roles.includes(EVERYBODY) || (policy !== 'of_login' && roles.includes(group));
      if (policy === POLICY && isOpen) {
        const others = readers.filter((one) => one !== group && one !== reader);
        statements.push(`alter policy ${POLICY} on ${name} to ${[reader, ...others].map(id).join(', ')}`);
      } else if (policy !== null && policy !== 'of_login' && isOpen) {
        throw new SqlAccessError(
          `The policy ${policy} on ${name} is for everybody, so a login would see what it shows. Drop it, or give it to a role.`,
        );
      }
    }
    const own = policies.find((one) => one.policy === 'of_login');
    const condition = name === 'public.sql_logins' ? 'role = current_user' : OF_LOGIN;
    if (!own) {
      statements.push(`create policy of_login on ${name} for select to ${id(group)} using (${condition})`);
    } else if (own.roles.join() !== group) {
      statements.push(`alter policy of_login on ${name} to ${id(group)}`);
    }
  }
  return statements;
}

/** How long a change of a table waits for those who read and write it. Meanwhile, capture waits behind it. */
const LOCK_TIMEOUT = '2s';
const TRIES = 20;

/** Runs the missing statements, one after the other. Another database of the server may share the group. */
export async function openForLogins(client: Queryable, roles: SqlRoles): Promise<void> {
  await client.query(`set lock_timeout = '${LOCK_TIMEOUT}'`);
  try {
    for (let tries = 1; ; tries += 1) {
      const missing = await missingForLogins(client, roles);
      if (missing.length === 0) return;
      // Postgres only warns of rights that this user may not give or take.
      if (tries > TRIES) throw new SqlAccessError(`This user may not: ${missing[0]}`);
      try {
        for (const one of missing) await client.query(one);
      } catch (error) {
        if (tries === TRIES || !mayPass(error)) throw error;
        await pause(20 * tries);
      }
    }
  } finally {
    await client.query('reset lock_timeout');
  }
}

/** Returns whether a change of a role or a table can succeed when it is tried again: others do the same, or hold a lock. */
const mayPass = (error: unknown): boolean =>
  isLockTimeout(error) || /^(23505|42710|XX000|40P01)$/.test((error as { code?: string }).code ?? '');

/**
 * What Postgres keeps for a login. A person can change all of these for a session but `temp_file_limit`, which only a
 * superuser can set. The keeper (tenancy/sql-keeper.ts) ends who goes beyond `TRANSACTION_SECONDS`.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  search_path: SQL_SCHEMA,
  default_transaction_read_only: 'on',
  statement_timeout: '5min',
  idle_in_transaction_session_timeout: '1min',
  lock_timeout: '5s',
  client_connection_check_interval: '1s',
  work_mem: '16MB',
  hash_mem_multiplier: '1',
  max_parallel_workers_per_gather: '0',
  jit: 'off',
};
/** How long a transaction of a login lasts at most. It keeps Postgres from cleaning up, and the product from partitions. */
export const TRANSACTION_SECONDS = 600;
const TEMP_FILE_LIMIT = '1GB';

export const newPassword = (): string => randomBytes(24).toString('base64url');
/** A name that no other database of the server uses, so that two copies of a database never share a login. */
export const newLoginName = (projectId: number): string =>
  `sluice_project_${projectId}_${randomBytes(4).toString('hex')}`;

/** Makes the role of a login, or gives it another password and its settings again. Call it in a transaction. */
export async function putLoginRole(
  client: Queryable,
  { owner, group }: SqlRoles,
  { role, password, connections }: { role: string; password: string; connections: number },
): Promise<void> {
  const { rows } = await client.query(
    `select (select rolsuper from pg_roles where rolname = current_user) as super,
       current_setting('server_version_num')::int as version, quote_ident(current_database()) as database,
       exists (select from pg_roles where rolname = $1) as exists`,
    [role],
  );
  const { super: isSuperuser, version, database, exists } = rows[0];
  const settings = {
    ...SETTINGS,
    ...(version >= 170000 ? { transaction_timeout: `${TRANSACTION_SECONDS}s` } : {}),
    ...(isSuperuser ? { temp_file_limit: TEMP_FILE_LIMIT } : {}),
  };
  const verifier = scramVerifier(password, randomBytes(16));
  for (const statement of [
    `${exists ? 'alter' : 'create'} role ${id(role)} login inherit connection limit ${connections} password ${text(verifier)}`,
    // Its user may have changed them.
    `alter role ${id(role)} reset all`,
    `alter role ${id(role)} in database ${database} reset all`,
    ...Object.entries(settings).map(([name, value]) => `alter role ${id(role)} set ${name} = ${text(value)}`),
    `grant ${id(group)} to ${id(role)} with inherit true, set false`,
    // Who inherits a role may end its sessions.
    `grant ${id(role)} to ${id(owner)} with inherit true, set false`,
  ])
    await client.query(statement);
}

/** Milliseconds that a session has to end. */
const ENDING = 10_000;

/** Ends all sessions of a role, and waits until they are over. */
export async function endSessions(client: Queryable, role: string): Promise<void> {
  await client.query(
    `select pg_terminate_backend(pid, $2) from pg_stat_activity where usename = $1 and pid <> pg_backend_pid()`,
    [role, ENDING],
  );
}

/**
 * Drops a role with everything that it was given. Its sessions end first, because they could hold locks on the role. They
 * could also come back before it may no longer log in.
 */
export async function dropLoginRole(client: Queryable, role: string): Promise<void> {
  await client.query(`set lock_timeout = '${LOCK_TIMEOUT}'`);
  try {
    for (let tries = 1; ; tries += 1) {
      const { rows } = await client.query('select from pg_roles where rolname = $1', [role]);
      if (rows.length === 0) return;
      try {
        await endSessions(client, role);
        await client.query(`alter role ${id(role)} nologin`);
        await endSessions(client, role);
        await client.query(`drop owned by ${id(role)}`);
        await client.query(`drop role ${id(role)}`);
        return;
      } catch (error) {
        if (tries === TRIES || !mayPass(error)) throw error;
        await pause(20 * tries);
      }
    }
  } finally {
    await client.query('reset lock_timeout');
  }
}
