// What somebody with a SQL client reads, and everything by which they could read or do more.
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import pg from 'pg';
import { createListener } from '../../../db/listen.ts';
import { LOCKS } from '../../../db/locks.ts';
import { CALLABLE, CLOSED } from '../../../db/roles/readable.ts';
import { ensureRoles, findRoles } from '../../../db/roles/roles.ts';
import { openNotice } from '../../../db/sealed-notices.ts';
import { NEW_EVENTS } from '../../../functions/dispatch/follower.ts';
import { OPERATOR } from '../../../tenancy/actor.ts';
import { grantSqlAccess } from '../../../tenancy/sql-access.ts';
import { databaseForFile } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { execute, insertProjects, insertTwoProjects, MINE, THEIRS, userIn } from './world.ts';

let url: string;
let role: string;
let theirs: string;

afterAll(async () => {
  // Roles outlive the database, and must go before it.
  for (const one of [url, theirs].filter(Boolean)) {
    await database.pool.query(`drop owned by ${userIn(one)}; drop role ${userIn(one)}`);
  }
});
const database = databaseForFile();

const VIEWS = [
  'cohort_people',
  'cohorts',
  'definitions',
  'events',
  'export_runs',
  'group_types',
  'groups',
  'person_distinct_ids',
  'persons',
];

beforeAll(async () => {
  await ensureRoles({ url: database.url });
  await insertProjects(database.pool);
  await insertTwoProjects(database.pool);
  for (const project of [MINE, THEIRS]) {
    const word = project === MINE ? 'open' : 'secret';
    const { rows } = await database.pool.query(
      `insert into cohorts (project_id, name, is_static, filters) values ($1, $2, true, '{}') returning id`,
      [project, `${word} cohort`],
    );
    await database.pool.query(
      'insert into cohort_people (project_id, cohort_id, person_id) select $1, $2, id from persons where project_id = $1',
      [project, rows[0].id],
    );
    await database.pool.query(
      `insert into definitions (project_id, kind, group_type_index, name) values ($1, 'event', -1, $2)`,
      [project, `${word} event`],
    );
    await database.pool.query(
      `insert into batch_export_runs (project_id, id, batch_export_id, workflow_id, workflow_run_id, status, data_interval_end, fence, latest_error)
       values ($1, gen_random_uuid(), gen_random_uuid(), $2, $2, 'Failed', now(), 1, $2)`,
      [project, `${word} run`],
    );
    await database.pool.query(`update group_types set group_type = $2 where project_id = $1`, [
      project,
      `${word} type`,
    ]);
  }
  await database.pool.query('analyze');
  const grant = async (projectId: number) =>
    (
      await grantSqlAccess({ url: database.url }, OPERATOR, {
        projectId,
        connections: 5,
        despiteFunctions: false,
      })
    ).url;
  url = await grant(MINE);
  theirs = await grant(THEIRS);
  role = userIn(url);
});

/** Runs statements as the person does who is given the login: in one session of their own. */
const asPerson = (text: string) => execute(url, text);

/** Returns why Postgres refuses what the person tries. */
const refusal = (text: string): Promise<string> =>
  asPerson(text).then(
    (rows) => `it did not: ${JSON.stringify(rows).slice(0, 200)}`,
    (error: Error) => error.message,
  );

describe('a person with a SQL client', () => {
  test.each(VIEWS)('sees the rows of their project in %s, and all of them', async (view) => {
    const rows = await asPerson(`select * from ${view}`);
    const { rows: all } = await database.pool.query(
      `select count(*)::int as count from public.${view === 'export_runs' ? 'batch_export_runs' : view} where project_id = $1`,
      [MINE],
    );
    expect(rows).toHaveLength(all[0].count);
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toMatch(/secret/);
    expect(Object.keys(rows[0] as object)).not.toEqual(expect.arrayContaining(['project_id']));
    const others = await execute(theirs, `select * from ${view}`);
    if (!['cohort_people'].includes(view)) expect(JSON.stringify(others)).toMatch(/secret/);
    expect(JSON.stringify(others)).not.toMatch(/open/);
  });

  test('asks as people do: joins, JSON, groups with their type, and copies it out', async () => {
    const rows = await asPerson(
      `select e.event, e.properties ->> 'word' as word, p.properties ->> 'email' as email, g.group_type, count(*)::int as count
       from events e join persons p on p.id = e.person_id join groups g on g.group_type_index = 0 and g.group_key = e.group_0
       where e.timestamp >= '2026-03-01' group by 1, 2, 3, 4`,
    );
    expect(rows).toEqual([
      { event: 'open event', word: 'open', email: 'open@example.com', group_type: 'open type', count: 3 },
    ]);
  });

  test('counts people once who were merged', async () => {
    const other = '019caab2-0000-7000-8000-0000000000aa';
    await database.pool.query(
      `update person_distinct_ids set person_id = $2 where project_id = $1 and distinct_id = 'open user'`,
      [MINE, other],
    );
    const rows = await asPerson(
      'select distinct person_id, event_person_id <> person_id as was_other from events',
    );
    expect(rows).toEqual([{ person_id: other, was_other: true }]);
    await database.pool.query(
      `update person_distinct_ids d set person_id = p.id from persons p
       where d.project_id = $1 and d.distinct_id = 'open user' and p.project_id = $1`,
      [MINE],
    );
  });

  test('pays for the person of an event only where it is asked for, and for the project only once', async () => {
    const plan = async (text: string) =>
      JSON.stringify(await asPerson(`set enable_seqscan = off; explain (format json) ${text}`));
    const without = await plan(`select event from events where timestamp >= '2026-03-01'`);
    expect(without).not.toContain('person_distinct_ids');
    expect(without).toContain('InitPlan');
    expect(await plan('select person_id from events')).toContain('person_distinct_ids');
  });
});

describe('no setting and no other name shows another project', () => {
  const reads = [
    'select * from sluice_sql.events',
    'select * from public.events',
    'select * from public.persons',
    'select * from public.groups',
    'select * from public.cohort_people p join public.cohorts c on c.id = p.cohort_id',
    'select * from public.sql_logins',
    'select * from public.group_types',
    'table public.definitions',
    'with recursive r as (select 1 as n union all select n + 1 from r where n < 3) select r.n, e.* from r left join public.events e on e.project_id = r.n',
    'prepare p as select * from public.events; execute p',
    'begin; declare c cursor with hold for select * from public.events; commit; fetch all from c',
    'copy (select * from public.events) to stdout',
  ];
  const settings = [
    '',
    `set sluice.project = '${THEIRS}'; `,
    `set role none; set sluice.project = '${THEIRS}'; `,
    `set session sluice.project to ${THEIRS}; set plan_cache_mode = force_generic_plan; set search_path = public; `,
    `set transaction read write; set default_transaction_read_only = off; set local sluice.project = '${THEIRS}'; `,
  ];

  test.each(reads)('%s', async (read) => {
    for (const setting of settings) {
      const text = await outputOf(setting + read);
      expect([setting, text]).toEqual([setting, expect.not.stringMatching(/secret/)]);
      expect([setting, text]).toEqual([setting, expect.stringMatching(/open|019ca|sluice_project_1_/)]);
    }
  });

  test('the same statements show the owner both projects', async () => {
    const { rows } = await database.pool.query('select * from events');
    expect(JSON.stringify(rows)).toMatch(/secret/);
  });

  test('a setting of the role is no setting of the next session either', async () => {
    const [{ name }] = (await asPerson('select current_database() as name')) as [{ name: string }];
    const here = `alter role ${role} in database ${name}`;
    const change = (text: string) => asPerson(`begin read write; ${here} ${text}; commit`);
    await expect(change(`set sluice.project = '${THEIRS}'`)).rejects.toThrow(
      'permission denied to set parameter',
    );
    await change('set search_path = public');
    await change('set default_transaction_read_only = off');
    const rows = await asPerson(`set sluice.project = '${THEIRS}'; select * from events`);
    expect(new Set(rows.map((row) => row.project_id))).toEqual(new Set([MINE]));
    await change('reset all');
  });

  test('the reader sees the project of its transaction as before, and no login is one', async () => {
    const client = await database.reader.connect();
    try {
      const seen = async (project: number) => {
        await client.query(`begin; set local sluice.project = '${project}'`);
        const { rows } = await client.query('select distinct project_id from events');
        await client.query('rollback');
        return rows.map((row) => row.project_id);
      };
      expect([await seen(MINE), await seen(THEIRS)]).toEqual([[MINE], [THEIRS]]);
      expect((await client.query('select * from events')).rows).toEqual([]);
    } finally {
      client.release();
    }
    expect((await findRoles({ url: database.url })).wall).toEqual({ up: true, sql: '' });
  });
});

/** Everything that a session prints, as rows or as COPY. */
async function outputOf(text: string): Promise<string> {
  const client = new pg.Client({ connectionString: url, application_name: 'test-person' });
  client.on('error', () => undefined);
  const connection = (client as unknown as { connection: NodeJS.EventEmitter }).connection;
  let copied = '';
  connection.on('copyData', (message: { chunk: Buffer }) => {
    copied += message.chunk.toString();
  });
  await client.connect();
  try {
    const results = await client.query(text);
    return copied + JSON.stringify([results].flat().map((one) => one.rows));
  } catch (error) {
    return `refused: ${(error as Error).message}`;
  } finally {
    await client.end();
  }
}

describe('conditions that fail on a row tell nothing of the rows of others', () => {
  // Each of them fails for a row of the other project, so an order that asks them first would show it.
  test.each([
    `select * from public.events where 1 / (case when properties ->> 'word' = 'secret' then 0 else 1 end) = 1`,
    `select * from public.events where (case when event ~ 'secret' then event else '1' end)::int > 0`,
    `select count(*) from public.persons where case when properties ->> 'email' like 'secret%' then (properties ->> 'email')::int else 1 end = 1`,
    `select * from public.events e join public.persons p on (case when p.properties::text ~ 'secret' then e.event else '1' end)::int = 1`,
    `select * from public.groups where (case when properties ->> 'word' = 'secret' then properties ->> 'word' else '1' end)::numeric = 1`,
    `select * from public.sql_logins where (case when role <> current_user then role::text else '1' end)::int = 1`,
    `select * from sluice_sql.cohorts where (case when name ~ 'secret' then name else '1' end)::int = 1`,
    `select * from sluice_sql.events where xpath_exists('/a', case when event ~ 'secret' then event::xml else '<a/>'::xml end)`,
  ])('%s', async (text) => {
    for (const setting of [
      '',
      'set enable_seqscan = off; ',
      'set enable_indexscan = off; set enable_bitmapscan = off; ',
    ])
      await expect(asPerson(setting + text)).resolves.toBeDefined();
    // The owner meets the row of the other project.
    await expect(database.pool.query(text.replaceAll('sluice_sql.', 'public.'))).rejects.toThrow();
  });

  test('a plan counts the rows of the project alone', async () => {
    const rows = await asPerson('explain (analyze, format json) select * from public.events');
    expect(JSON.stringify(rows)).not.toMatch(/secret/);
    const [{ Plan }] = (rows[0] as { 'QUERY PLAN': { Plan: Record<string, number> }[] })['QUERY PLAN'] as [
      { Plan: Record<string, number> },
    ];
    expect(Plan['Actual Rows']).toBe(3);
  });

  test('statistics tell nothing', async () => {
    for (const view of ['pg_stats', 'pg_stats_ext', 'pg_stats_ext_exprs'])
      expect(JSON.stringify(await asPerson(`select * from ${view} where schemaname = 'public'`))).not.toMatch(
        /secret/,
      );
    expect(await refusal('select * from pg_statistic')).toMatch(/^permission denied/);
  });
});

describe('walls', () => {
  test.each<[string, RegExp]>([
    // Other roles.
    ['set role postgres', /permission denied to set role/],
    ['set role GROUP', /permission denied to set role/],
    ['set role OWNER', /permission denied to set role/],
    ['set session authorization THEIRS', /permission denied to set session/],
    ['set session authorization postgres', /permission denied to set session/],
    ['grant GROUP to THEIRS', /permission denied to grant/],
    ['alter role THEIRS nologin', /permission denied/],
    ['alter role ROLE superuser', /permission denied/],
    ['alter role ROLE bypassrls', /permission denied/],
    ['alter role ROLE connection limit 1000', /permission denied/],
    ['create role mine', /permission denied to create role/],
    // The wall itself, and what leads around it.
    ['set row_security = off; select * from public.events', /would be affected by row-level security/],
    ['alter table public.events disable row level security', /must be owner/],
    ['drop policy of_login on public.events', /must be owner/],
    ['create policy mine on public.events using (true)', /must be owner/],
    ['alter view sluice_sql.events set (security_invoker = false)', /must be owner/],
    ['create or replace view sluice_sql.events as select 1', /permission denied for schema/],
    ['select * from public.events_default', /permission denied for table/],
    ['select * from public.projects', /permission denied for table/],
    ['select * from public.database_roles', /permission denied for table/],
    ['select * from public.batch_exports', /permission denied for table/],
    ['select * from public.personal_api_keys', /permission denied for table/],
    ['select * from public.deleted_distinct_ids', /permission denied for table/],
    ['select * from public.event_ids', /permission denied for table/],
    ['select * from pg_authid', /permission denied/],
    ['select * from pg_largeobject', /permission denied/],
    ['select query from pg_stat_activity', /permission denied for function/],
    [`set session_replication_role = replica`, /permission denied to set parameter/],
    [`set temp_file_limit = -1`, /permission denied to set parameter/],
    [`set log_statement = 'none'`, /permission denied to set parameter/],
    [`set track_activities = off`, /permission denied to set parameter/],
    // What writes.
    ['delete from public.events', /permission denied/],
    ['update public.sql_logins set project_id = 2', /permission denied/],
    ['insert into public.sql_logins select * from public.sql_logins', /permission denied/],
    ['delete from sluice_sql.persons', /permission denied/],
    ['insert into sluice_sql.definitions (name) values ($$x$$)', /permission denied/],
    ['select * from public.events for update', /permission denied/],
    ['select nextval($$public.definition_stamps$$)', /permission denied/],
    ['truncate public.groups', /permission denied/],
    ['lock table public.events in row exclusive mode', /permission denied|only run in|transaction block/],
    ['begin; lock table public.events in access exclusive mode', /permission denied/],
    ['begin; lock table public.events in share mode', /permission denied/],
    // What makes things: tables, functions and operators of one's own, also temporary ones.
    ['create table public.mine (n integer)', /permission denied for schema/],
    ['create table sluice_sql.mine (n integer)', /permission denied for schema/],
    ['create temporary table mine (n integer)', /permission denied to create temporary/],
    ['create temporary view mine as select 1', /permission denied to create temporary/],
    [
      'create function pg_temp.mine(text) returns boolean language sql cost 0.0001 as $$ select true $$',
      /permission denied to create temporary/,
    ],
    [
      'create function public.mine() returns integer language sql as $$ select 1 $$',
      /permission denied for schema/,
    ],
    ['create schema mine', /permission denied for database/],
    ['create extension dblink', /permission denied to create extension/],
    ['create server mine foreign data wrapper mine', /does not exist|permission denied/],
    ['create publication mine', /permission denied/],
    ['create statistics mine on event, uuid from public.events', /must be owner/],
    ['create event trigger mine on ddl_command_start execute function mine()', /permission denied|read-only/],
    ['analyze public.events; select 1/0', /division by zero/],
    // Files and programs of the server.
    [`copy (select 1) to '/tmp/sluice'`, /permission denied to COPY/],
    [`copy (select 1) to program 'id'`, /permission denied to COPY/],
    [`copy public.events from '/etc/passwd'`, /permission denied/],
    [`select pg_read_file('/etc/passwd')`, /permission denied for function/],
    [`select pg_ls_dir('/')`, /permission denied for function/],
    [`select lo_import('/etc/passwd')`, /permission denied for function/],
    ['select lo_create(0)', /permission denied for function/],
    [`select lo_from_bytea(0, 'x')`, /permission denied for function/],
    [`load 'pageinspect'`, /access to library .* is not allowed/],
    [`select dblink('dbname=postgres', 'select 1')`, /does not exist/],
    // What stops others.
    [`select pg_advisory_lock(${LOCKS.horizon})`, /permission denied for function/],
    [`select pg_try_advisory_lock(${LOCKS.horizon})`, /permission denied for function/],
    [`select pg_advisory_xact_lock(${LOCKS.migrate})`, /permission denied for function/],
    ['select pg_advisory_lock_shared(1, 2)', /permission denied for function/],
    ['select pg_terminate_backend(1)', /permission denied for function/],
    ['select pg_cancel_backend(1)', /permission denied for function/],
    ['select pg_sleep(1)', /permission denied for function/],
    [`select pg_notify('sluice_flags', '1')`, /permission denied for function/],
    [`select pg_logical_emit_message(true, 'a', 'b')`, /permission denied for function/],
    [`select set_config('sluice.project', '${THEIRS}', false)`, /permission denied for function/],
    [`select query_to_xml('select * from public.events', true, true, '')`, /permission denied for function/],
    ['select pg_stat_reset()', /permission denied for function/],
    ['select pg_reload_conf()', /permission denied for function/],
    [`select 1; prepare transaction 'mine'`, /prepared transactions are disabled/],
    [`comment on table public.events is 'mine'`, /must be owner/],
    ['vacuum full public.events; select 1/0', /transaction block|division by zero|permission/],
    ['checkpoint', /permission denied/],
    ['drop owned by OWNER', /permission denied|read-only/],
    ['reassign owned by ROLE to OWNER', /permission denied|read-only/],
  ])('%s', async (text, refused) => {
    const { rows } = await database.pool.query('select tag from database_roles');
    const tag = `sluice_${rows[0].tag}`;
    const written = text
      .replaceAll('GROUP', `${tag}_sql`)
      .replaceAll('OWNER', `${tag}_owner`)
      .replaceAll('THEIRS', userIn(theirs))
      .replaceAll('ROLE', role);
    // The login works read-only only until somebody says otherwise.
    expect(await refusal(`set transaction read write; ${written}`)).toMatch(refused);
  });

  test('functions are not called by the fast path of the protocol either', async () => {
    // A message F with the oid of pg_advisory_lock(bigint), one argument in binary, and a result in binary.
    const { rows } = await database.pool.query(
      `select 'pg_advisory_lock(bigint)'::regprocedure::oid::int as oid`,
    );
    const client = new pg.Client({ connectionString: url, application_name: 'test-person' });
    client.on('error', () => undefined);
    await client.connect();
    const connection = (
      client as unknown as { connection: NodeJS.EventEmitter & { stream: NodeJS.WritableStream } }
    ).connection;
    const body = Buffer.alloc(26);
    body.writeInt32BE(rows[0].oid, 0);
    body.writeInt16BE(1, 4);
    body.writeInt16BE(1, 6);
    body.writeInt16BE(1, 8);
    body.writeInt32BE(8, 10);
    body.writeBigInt64BE(BigInt(LOCKS.horizon), 14);
    body.writeInt16BE(1, 22);
    const message = Buffer.concat([Buffer.from('F'), Buffer.alloc(4), body.subarray(0, 24)]);
    message.writeInt32BE(message.length - 1, 1);
    const answer = new Promise<Error>((resolve) =>
      connection.once('errorMessage', (error: Error) => resolve(error)),
    );
    connection.stream.write(message);
    expect((await answer).message).toMatch(/permission denied for function/);
    await client.end();
  });

  test('there is no more than its connections', async () => {
    const clients = Array.from({ length: 8 }, () => {
      const client = new pg.Client({ connectionString: url, application_name: 'test-person' });
      client.on('error', () => undefined);
      return client;
    });
    const results = await Promise.allSettled(clients.map((client) => client.connect()));
    const refused = results.filter((one) => one.status === 'rejected');
    expect(refused).toHaveLength(3);
    for (const one of refused) expect((one.reason as Error).message).toMatch(/too many connections for role/);
    await Promise.allSettled(clients.map((client) => client.end()));
  });

  test('the settings of the login hold from the first statement on', async () => {
    const [row] = await asPerson(
      `select current_setting('default_transaction_read_only') as read_only, current_setting('statement_timeout') as statement,
         current_setting('idle_in_transaction_session_timeout') as idle, current_setting('temp_file_limit') as files`,
    );
    expect(row).toEqual({ read_only: 'on', statement: '5min', idle: '1min', files: '1GB' });
  });
});

describe('rights', () => {
  test('are on the views and what they read, to read it, and on nothing else in the database', async () => {
    const { rows } = await database.pool.query(
      `select format('%I.%I', n.nspname, c.relname) as name,
         has_table_privilege($1, c.oid, 'select') or has_any_column_privilege($1, c.oid, 'select') as reads,
         has_table_privilege($1, c.oid, 'insert, update, delete, truncate, references, trigger')
           or has_any_column_privilege($1, c.oid, 'insert, update, references') as writes
       from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema' order by 1`,
      [role],
    );
    const readable = [
      ...['batch_export_runs', 'cohort_people', 'cohorts', 'definitions', 'events'].map(
        (one) => `public.${one}`,
      ),
      ...['group_types', 'groups'].map((one) => `public.${one}`),
      ...['person_distinct_ids', 'persons', 'sql_logins'].map((one) => `public.${one}`),
      ...VIEWS.map((one) => `sluice_sql.${one}`),
    ];
    expect(rows.length).toBeGreaterThan(60);
    expect(rows.filter((row) => row.reads).map((row) => row.name)).toEqual(readable);
    expect(rows.filter((row) => row.writes)).toEqual([]);
  });

  test('call no function of ours that acts on anything, and none that acts on others', async () => {
    const { rows } = await database.pool.query(
      `select n.nspname as schema, p.proname as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where n.nspname !~ '^pg_' and n.nspname not in ('information_schema', 'hq') and has_function_privilege($1, p.oid, 'execute')
       order by 1, 2`,
      [role],
    );
    // What remains computes from its arguments, or reads what the login itself may read.
    expect(rows).toEqual(CALLABLE.toSorted().map((name) => ({ schema: 'public', name })));
    expect(await refusal("select hq.url_path('x')")).toMatch(/permission denied for schema/);
    const { rows: closed } = await database.pool.query(
      `select p.oid::regprocedure::text as name from pg_proc p where p.proname ~ $2 and has_function_privilege($1, p.oid, 'execute')`,
      [role, `^(${CLOSED.join('|')})$`],
    );
    expect(closed).toEqual([]);
    // None runs with the rights of whoever made it.
    const { rows: definers } = await database.pool.query(
      `select p.oid::regprocedure::text as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where p.prosecdef and n.nspname in ('public', 'hq', 'sluice_sql')`,
    );
    expect(definers).toEqual([]);
  });

  test('make nothing in any schema, nor in the database', async () => {
    const { rows } = await database.pool.query(
      `select nspname as name from pg_namespace where has_schema_privilege($1, oid, 'create')
       union all select datname from pg_database where datname = current_database() and has_database_privilege($1, oid, 'create, temporary')
       union all select spcname from pg_tablespace where has_tablespace_privilege($1, oid, 'create')
       union all select fdwname from pg_foreign_data_wrapper where has_foreign_data_wrapper_privilege($1, oid, 'usage')
       union all select srvname from pg_foreign_server where has_server_privilege($1, oid, 'usage')
       union all select parname from pg_parameter_acl where has_parameter_privilege($1, parname, 'set, alter system')`,
      [role],
    );
    expect(rows).toEqual([]);
  });

  test('are those of one role that nobody can be', async () => {
    const { rows } = await database.pool.query(
      `select r.rolsuper or r.rolcreaterole or r.rolcreatedb or r.rolreplication or r.rolbypassrls as mighty,
         array(select format('%s %s %s', g.rolname, m.inherit_option, m.set_option) from pg_auth_members m
           join pg_roles g on g.oid = m.roleid where m.member = r.oid) as groups
       from pg_roles r where r.rolname = $1`,
      [role],
    );
    expect(rows).toEqual([{ mighty: false, groups: [expect.stringMatching(/^sluice_\w+_sql t f$/)] }]);
  });

  test('every table that a login reads has row-level security, and no policy that is for everybody', async () => {
    const { rows } = await database.pool.query(
      `select c.relname as name, c.relrowsecurity as secured,
         array(select p.polname::text from pg_policy p where p.polrelid = c.oid
           and (0 = any(p.polroles) or exists (select from unnest(p.polroles) one where one <> 0 and pg_has_role($1, one, 'usage')))) as policies
       from pg_class c where c.relkind in ('r', 'p') and c.relnamespace = 'public'::regnamespace
         and has_any_column_privilege($1, c.oid, 'select') order by 1`,
      [role],
    );
    expect(rows).toHaveLength(10);
    for (const row of rows) expect(row).toEqual({ ...row, secured: true, policies: ['of_login'] });
  });

  test('every view shows what the user who asks may see', async () => {
    const { rows } = await database.pool.query(
      `select relname as name from pg_class where relnamespace = 'sluice_sql'::regnamespace and relkind = 'v'
         and reloptions = array['security_invoker=true'] order by 1`,
    );
    expect(rows.map((row) => row.name)).toEqual(VIEWS);
  });
});

describe('a person who listens to every channel', () => {
  const CHANNELS = [
    ...['sluice_project_keys', 'sluice_flags', 'sluice_public_offers', 'sluice_site_functions'],
    ...['sluice_source_webhooks', NEW_EVENTS],
  ];
  /** What is told within the work, as a client of this address hears it. */
  async function heard(address: string, work: () => Promise<unknown>): Promise<Told[]> {
    const client = new pg.Client({ connectionString: address });
    const told: Told[] = [];
    await client.connect();
    try {
      client.on('notification', ({ channel, payload = '' }) => told.push({ channel, payload }));
      for (const one of CHANNELS) await client.query(`listen ${pg.escapeIdentifier(one)}`);
      await work();
      // Notifications of transactions that are over arrive before the next answer.
      await client.query('select 1');
      return told;
    } finally {
      await client.end();
    }
  }
  interface Told {
    channel: string;
    payload: string;
  }
  const change = (project: number, column = 'anonymize_ips = not anonymize_ips') =>
    database.pool.query(`update projects set ${column} where id = $1`, [project]);

  test('hears that something has changed, and not what, or of whom', async () => {
    const { rows } = await database.pool.query('select api_token as token from projects where id = $1', [
      THEIRS,
    ]);
    const told = await heard(url, async () => {
      await change(THEIRS);
      await change(THEIRS);
      await change(MINE);
      await database.pool.query(
        `insert into feature_flags (project_id, key, filters) values ($1, 'secret', '{"groups":[]}')`,
        [THEIRS],
      );
    });
    expect(new Set(told.map(({ channel }) => channel))).toEqual(
      new Set(['sluice_project_keys', 'sluice_flags']),
    );
    for (const { payload } of told) {
      expect(payload).toMatch(/^\d+\.[0-9a-f]{32}\.[01]{512}$/);
      expect(payload).not.toContain(rows[0].token);
    }
    // The same change told again, and that of another project, look alike.
    expect(new Set(told.map(({ payload }) => payload.split('.')[1])).size).toBe(told.length);
    const [{ secret }] = (await database.pool.query('select secret from notice_secret')).rows;
    const opened = told.map(({ channel, payload }) => openNotice(secret, channel, payload));
    expect(opened).toEqual(expect.arrayContaining([rows[0].token, String(THEIRS)]));
    expect(opened).not.toContain(undefined);
    // What one has heard cannot be told as something else.
    const [{ payload }] = told as [Told];
    const flipped = payload.slice(0, -1) + (payload.endsWith('1') ? '0' : '1');
    for (const [channel, text] of [
      ['sluice_flags', payload],
      ['sluice_project_keys', flipped],
      ['sluice_project_keys', String(THEIRS)],
    ] as const) {
      expect(openNotice(secret, channel, text)).toBeUndefined();
    }
  });

  test('cannot read the secret, and changes nothing by telling something', async () => {
    expect(await refusal('select secret from public.notice_secret')).toMatch(/permission denied/);
    expect(await refusal(`select public.tell('sluice_flags', '1')`)).toMatch(/permission denied/);
    const listener = createListener({ url: database.url, name: 'test' });
    try {
      const told: string[] = [];
      const subscriber = { told: (text: string) => told.push(text), missed: () => undefined };
      listener.subscribe('sluice_flags', subscriber);
      listener.subscribe('sluice_project_keys', subscriber);
      await eventually(async () => listener.isListening());
      await asPerson(`notify sluice_flags, '${THEIRS}'; notify sluice_project_keys, 'phc_x'`);
      await change(MINE);
      await eventually(async () => told.length > 0);
      expect(told).toEqual([expect.stringMatching(/^phc_/)]);
    } finally {
      await listener.close();
    }
  });

  test('tells nothing in plain text: every trigger seals', async () => {
    const { rows } = await database.pool.query(
      `select proname from pg_proc where pronamespace = 'public'::regnamespace and proname <> 'tell' and prosrc like '%pg_notify%'`,
    );
    expect(rows).toEqual([]);
    const telling = await database.pool.query(
      `select count(*)::int as many from pg_proc where pronamespace = 'public'::regnamespace and prosrc like '%public.tell(%'`,
    );
    expect(telling.rows[0].many).toBeGreaterThan(4);
  });
});
