import { randomBytes } from 'node:crypto';
import pg from 'pg';
import type { Queryable } from '../pool.ts';
import { PROJECT_SETTING } from './project-setting.ts';
import { CALLABLE, CLOSED, READABLE } from './readable.ts';
import { scramVerifier } from './scram.ts';

const SALT_BYTES = 16;

/** The roles of a database of Sluice. */
export interface RolePlan {
  /** Owns the tables. Whoever inherits it is not held by row-level security. */
  owner: string;
  /** Runs what is compiled from texts of users. */
  reader: string;
  /** Users of addresses that the operator gave. They inherit the owner. */
  logins: readonly string[];
  /** What Sluice makes itself. Undefined: the operator made the roles. */
  own?: { server: string; serverPassword: string; readerPassword: string } | undefined;
}

/** The statements that are missing. They can be run again. */
export interface MissingStatements {
  /** Without them, the second wall is not up. */
  wall: string[];
  /** What only a superuser can take from the reader: functions, and the room for temporary files. */
  closing: string[];
}

const id = pg.escapeIdentifier;
const text = pg.escapeLiteral;
const list = (texts: readonly string[]) => `array[${texts.map(text).join(', ')}]::text[]`;

/** Has the rights that a role has before somebody gives it others. */
export const EVERYBODY = 'public';
/** The policy by which the reader sees rows. */
export const POLICY = 'of_project';

interface Role {
  rolname: string;
  mighty: boolean;
  rolconfig: string[] | null;
}

/** Compares the database with what the second wall needs. Changes nothing, and needs no rights. */
export async function missingStatements(client: Queryable, plan: RolePlan): Promise<MissingStatements> {
  const roles = await findRoles(client, plan);
  return {
    wall: [
      ...makeRoles(plan, roles),
      ...(await joinRoles(client, plan, roles)),
      ...(await giveToOwner(client, plan)),
      ...(await allowReader(client, plan, roles)),
      ...(await showReader(client, plan)),
    ],
    closing: [...(await closeFunctions(client, plan, roles)), ...(await limitFiles(client, plan, roles))],
  };
}

async function findRoles(client: Queryable, { owner, reader, own }: RolePlan): Promise<Map<string, Role>> {
  const { rows } = await client.query<Role>(
    `select rolname, rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls as mighty, rolconfig
     from pg_roles where rolname = any($1)`,
    [[owner, reader, ...(own ? [own.server] : [])]],
  );
  return new Map(rows.map((role) => [role.rolname, role]));
}

const login = (password: string) =>
  `login password ${text(scramVerifier(password, randomBytes(SALT_BYTES)))}`;

function makeRoles({ owner, reader, own }: RolePlan, roles: ReadonlyMap<string, Role>): string[] {
  if (!own) return [];
  const statements: string[] = [];
  if (!roles.has(owner)) statements.push(`create role ${id(owner)} nologin`);
  if (!roles.has(own.server)) statements.push(`create role ${id(own.server)} ${login(own.serverPassword)}`);
  const found = roles.get(reader);
  if (!found) statements.push(`create role ${id(reader)} ${login(own.readerPassword)}`);
  if (found?.mighty) {
    statements.push(`alter role ${id(reader)} nosuperuser nocreaterole nocreatedb noreplication nobypassrls`);
  }
  if (!found?.rolconfig?.includes('default_transaction_read_only=on')) {
    statements.push(`alter role ${id(reader)} set default_transaction_read_only = on`);
  }
  return statements;
}

/** Returns the statements that give the roles of a plan the passwords that Sluice knows. */
export function passwordStatements({ reader, own }: RolePlan): string[] {
  if (!own) return [];
  return [
    `alter role ${id(own.server)} ${login(own.serverPassword)}`,
    `alter role ${id(reader)} ${login(own.readerPassword)}`,
  ];
}

async function joinRoles(
  client: Queryable,
  { owner, reader, logins, own }: RolePlan,
  roles: ReadonlyMap<string, Role>,
): Promise<string[]> {
  const members = [...new Set([...(own ? [own.server] : []), ...logins])].filter((one) => one !== owner);
  const { rows: outside } = await client.query(
    `select member from unnest($1::text[]) with ordinality as given (member, place)
     left join pg_roles r on r.rolname = member left join pg_roles o on o.rolname = $2
     where r.rolsuper is not true and (r.oid is null or o.oid is null or not (pg_has_role(r.oid, o.oid, 'usage') and pg_has_role(r.oid, o.oid, 'set')))
     order by place`,
    [members, owner],
  );
  const { rows: joined } = await client.query(
    `select pg_get_userbyid(m.roleid) as role from pg_auth_members m join pg_roles r on r.oid = m.member
     left join pg_roles o on o.rolname = $2
     where r.rolname = $1 and ($3 or pg_has_role(m.roleid, o.oid, 'member')) order by 1`,
    [roles.has(reader) ? reader : null, owner, own !== undefined],
  );
  return [
    ...outside.map(({ member }) => `grant ${id(owner)} to ${id(member)} with inherit true, set true`),
    ...joined.map(({ role }) => `revoke ${id(role)} from ${id(reader)}`),
  ];
}

/**
 * Selects what Sluice has made and another role owns: by a migration, or, as partitions, by a process of an older
 * version. What an extension or somebody else made is left alone.
 */
const misplaced = (owner: string, makers: readonly string[]) => `
  with foreign_makers as (
    select oid from pg_roles where rolname = any(${list(makers)}) and rolname <> ${text(owner)}),
  places as (select oid, nspname from pg_namespace where nspname in ('public', 'hq', 'sluice_sql')),
  things as (
    select 1 as place, 'schema' as kind, format('%I', nspname) as name, nspowner as owner, n.oid, 'pg_namespace'::regclass as class
    from pg_namespace n where nspname in ('hq', 'sluice_sql')
    union all
    select case c.relkind when 'v' then 3 else 2 end, case c.relkind when 'v' then 'view' when 'c' then 'type' when 'S' then 'sequence' else 'table' end,
      format('%I.%I', nspname, relname), relowner, c.oid, 'pg_class'::regclass
    from pg_class c join places on places.oid = c.relnamespace
    -- A sequence of a column goes with its table.
    where c.relkind in ('r', 'p', 'v', 'c') or c.relkind = 'S' and not exists (
      select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid and d.deptype in ('a', 'i'))
    union all
    select 4, 'routine', p.oid::regprocedure::text, proowner, p.oid, 'pg_proc'::regclass
    from pg_proc p join places on places.oid = p.pronamespace)
  select kind, name from things
  where owner in (select oid from foreign_makers) and not exists (
    select from pg_depend d where d.classid = things.class and d.objid = things.oid and d.deptype = 'e')
  order by place, name`;

async function giveToOwner(client: Queryable, { owner, logins, own }: RolePlan): Promise<string[]> {
  const makers = [...new Set([...logins, ...(own ? [own.server] : []), await ownerOf(client, 'migrations')])];
  const { rows } = await client.query(
    `select count(*)::int as count from (${misplaced(owner, makers)}) as things`,
  );
  const { rows: rights } = await client.query(
    `select has_schema_privilege(oid, 'public', 'usage') and has_schema_privilege(oid, 'public', 'create') as schema,
       has_database_privilege(oid, current_database(), 'connect') as database
     from pg_roles where rolname = $1`,
    [owner],
  );
  const statements: string[] = [];
  if (!rights[0]?.schema) statements.push(`grant usage, create on schema public to ${id(owner)}`);
  if (!rights[0]?.database) {
    statements.push(`grant connect on database ${await databaseName(client)} to ${id(owner)}`);
  }
  if (rows[0].count > 0) {
    statements.push(`do $give$
declare
  one record;
begin
  for one in ${misplaced(owner, makers)}
  loop
    execute format('alter %s %s owner to %I', one.kind, one.name, ${text(owner)});
  end loop;
end $give$`);
  }
  return statements;
}

/** Returns the owner of a table. */
export async function ownerOf(client: Queryable, table: string): Promise<string> {
  const { rows } = await client.query(
    'select pg_get_userbyid(relowner) as owner from pg_class where oid = to_regclass($1)',
    [table],
  );
  return rows[0].owner;
}

async function databaseName(client: Queryable): Promise<string> {
  const { rows } = await client.query('select current_database() as name');
  return id(rows[0].name);
}

/**
 * The relations of the database, and which of them `ours` are: this user may take rights on them away. The views of
 * Postgres itself show what everybody may know, or what a function of `CLOSED` returns.
 */
const RIGHTS = `
  select format('%I.%I', n.nspname, c.relname) as name, n.nspname = 'public' and c.relname = any($2) as readable,
    pg_has_role(c.relowner, 'usage') as ours,
    has_table_privilege($1, c.oid, 'select') as selects,
    has_any_column_privilege($1, c.oid, 'select') as looks,
    has_any_column_privilege($1, c.oid, 'insert, update, references')
      or has_table_privilege($1, c.oid, 'insert, update, delete, truncate, references, trigger') as writes
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  order by 1`;

interface Relation {
  name: string;
  readable: boolean;
  ours: boolean;
  selects: boolean;
  looks: boolean;
  writes: boolean;
}

const isForbidden = ({ readable, looks, writes }: Relation) => writes || (!readable && looks);

const CALLS = `
  select p.oid::regprocedure::text as name, n.nspname = 'hq' or p.proname = any($2) as callable,
    has_function_privilege($1, p.oid, 'execute') as calls,
    exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e') as extended
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname in ('public', 'hq')
  order by 1`;

async function allowReader(
  client: Queryable,
  { owner, reader }: RolePlan,
  roles: ReadonlyMap<string, Role>,
): Promise<string[]> {
  const name = roles.has(reader) ? reader : EVERYBODY;
  const to = id(reader);
  const database = await databaseName(client);
  const { rows: general } = await client.query(
    `select has_schema_privilege($1, 'public', 'usage') and has_schema_privilege($1, 'hq', 'usage') as usage,
       has_schema_privilege($1, 'public', 'create') or has_schema_privilege($1, 'hq', 'create') as creates,
       has_database_privilege($1, current_database(), 'connect') as connects,
       has_database_privilege($1, current_database(), 'create, temporary') as temporary`,
    [name],
  );
  const { usage, creates, connects, temporary } = general[0];
  const { rows: relations } = await client.query<Relation>(RIGHTS, [name, READABLE]);
  const { rows: functions } = await client.query(CALLS, [name, CALLABLE]);
  const wanted = relations.filter((one) => one.readable && !one.selects).map((one) => one.name);
  const forbidden = relations.filter((one) => one.ours && isForbidden(one));
  const lacking = functions.filter((one) => one.callable && !one.calls).map((one) => one.name);
  const extra = functions.filter((one) => !one.callable && one.calls && !one.extended).map((one) => one.name);
  return [
    ...(connects ? [] : [`grant connect on database ${database} to ${to}`]),
    // What everybody loses, the owner keeps.
    ...(temporary
      ? [
          `revoke create, temporary on database ${database} from public, ${to}`,
          `grant temporary on database ${database} to ${id(owner)}`,
        ]
      : []),
    ...(usage ? [] : [`grant usage on schema public, hq to ${to}`]),
    ...(creates
      ? [
          `revoke create on schema public, hq from public, ${to}`,
          `grant create on schema public, hq to ${id(owner)}`,
        ]
      : []),
    ...forbidden.map((one) => `revoke all on ${one.name} from public, ${to}`),
    ...[...wanted, ...forbidden.filter((one) => one.readable).map((one) => one.name)].map(
      (one) => `grant select on ${one} to ${to}`,
    ),
    ...(lacking.length > 0 ? [`grant execute on routine ${lacking.join(', ')} to ${to}`] : []),
    ...(extra.length > 0 ? [`revoke execute on routine ${extra.join(', ')} from public, ${to}`] : []),
  ];
}

/** What the reader sees: the rows of the project that its transaction names, and none without. */
const OF_PROJECT = `project_id = (select nullif(current_setting(${text(PROJECT_SETTING)}, true), '')::integer)`;

/**
 * The policies must be for the reader: a migration makes them for everybody, and `openForLogins` (sql-access.ts) keeps them
 * for the readers alone. A restored dump may lack them. A reader that was in use stays in them, because its transactions
 * would go on with no rows.
 */
async function showReader(client: Queryable, { reader }: RolePlan): Promise<string[]> {
  const { rows } = await client.query<{ name: string; roles: string[] | null }>(
    `select c.relname as name, case when p.oid is not null then
       array(select coalesce(r.rolname::text, $3) from unnest(p.polroles) as one left join pg_roles r on r.oid = one) end as roles
     from pg_class c left join pg_policy p on p.polrelid = c.oid and p.polname = $2
     where c.relnamespace = 'public'::regnamespace and c.relname = any($1) and c.relkind in ('r', 'p') order by 1`,
    [READABLE, POLICY, EVERYBODY],
  );
  return rows.flatMap(({ name, roles }) => {
    if (!roles)
      return [`create policy ${POLICY} on ${name} for select to ${id(reader)} using (${OF_PROJECT})`];
    if (roles.includes(EVERYBODY) || roles.includes(reader)) return [];
    return [`alter policy ${POLICY} on ${name} to ${[...roles, reader].map(id).join(', ')}`];
  });
}

/** Roles that administer. They keep the functions that everybody else loses. */
const KEEPERS = ['pg_monitor', 'pg_read_all_data', 'pg_signal_backend', 'pg_database_owner'];

const closable = (reader: string) => `
  select p.oid::regprocedure::text as name
  from pg_proc p
  where p.proname ~ ${text(`^(${CLOSED.join('|')})$`)} and has_function_privilege(${text(reader)}, p.oid, 'execute')
  order by 1`;

async function closeFunctions(
  client: Queryable,
  { owner, reader }: RolePlan,
  roles: ReadonlyMap<string, Role>,
): Promise<string[]> {
  const name = roles.has(reader) ? reader : EVERYBODY;
  const { rows: relations } = await client.query<Relation>(RIGHTS, [name, READABLE]);
  const foreign = relations.filter((one) => !one.ours && isForbidden(one));
  const revoked = foreign.map((one) => `revoke all on ${one.name} from public, ${id(reader)}`);
  const { rows } = await client.query(`select count(*)::int as count from (${closable(name)}) as functions`);
  if (rows[0].count === 0) return revoked;
  return [
    ...revoked,
    `do $close$
declare
  one record;
begin
  for one in ${closable(reader)}
  loop
    execute format('revoke execute on routine %s from public, ${id(reader)}', one.name);
    execute format('grant execute on routine %s to ${[owner, ...KEEPERS].map(id).join(', ').replaceAll("'", "''")}', one.name);
  end loop;
end $close$`,
  ];
}

/** The temporary files of a session of the reader. A sort of the largest result of a query has room. */
const TEMP_FILE_LIMIT = '10GB';

/** Bounds what one query writes to the disk. Without a bound, a cross join that is sorted fills it. */
async function limitFiles(
  client: Queryable,
  { reader }: RolePlan,
  roles: ReadonlyMap<string, Role>,
): Promise<string[]> {
  const { rows } = await client.query("select current_setting('temp_file_limit') = '-1' as unlimited");
  const isBounded = roles.get(reader)?.rolconfig?.some((one) => one.startsWith('temp_file_limit='));
  if (isBounded || !rows[0].unlimited) return [];
  return [`alter role ${id(reader)} set temp_file_limit = ${text(TEMP_FILE_LIMIT)}`];
}
