// The second wall alone: what the reader sees and may do, whatever the text says that it runs.
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals';
import type { Pool, Transaction } from '../../../db/pool.ts';
import { ofProject } from '../../../db/roles/project-setting.ts';
import { CLOSED, READABLE } from '../../../db/roles/readable.ts';
import { ensureRoles } from '../../../db/roles/roles.ts';
import type { SelectNode } from '../../../hog/ast/index.ts';
import { createSchema, printStatement } from '../../../hog/sql/index.ts';
import { Printer } from '../../../hog/sql/printer.ts';
import { sql } from '../../../hog/sql/sql.ts';
import { MODEL_NAMES, previewRows, queryFault, refusesQuery } from '../../../models/index.ts';
import { parserForFile, queryOf } from '../../models/support.ts';
import { databaseForFile } from '../../support/database.ts';
import { PATIENCE } from '../../support/eventually.ts';
import { AT, insertTwoProjects, MINE, THEIRS } from './world.ts';

const database = databaseForFile();
const parser = parserForFile();
const { guarded } = Printer.prototype;

beforeAll(async () => {
  // The rights on the database itself are not part of the clone.
  expect((await ensureRoles({ url: database.url })).wall).toEqual({ up: true, sql: '' });
  await insertTwoProjects(database.pool);
  // Every person is a member of a cohort of their project. Members have no text, so the cohort's number is told apart.
  await database.pool.query(
    'insert into cohort_people (project_id, cohort_id, person_id) select project_id, project_id, id from persons',
  );
  await database.pool.query(`update group_types set group_type = 'secret' where project_id = $1`, [THEIRS]);
});
afterEach(() => {
  Printer.prototype.guarded = guarded;
});

/** Takes the first wall down: the printer no longer restricts tables to the project. */
function withoutGuard(): void {
  Printer.prototype.guarded = function (this: Printer, { from }) {
    const project = this.parameters.add('bigint', String(this.options.projectId));
    return sql`(select * from ${typeof from === 'function' ? from(project, this.parameters) : from})`;
  };
}

/** Runs work in a transaction that names a project, or none, and changes nothing. */
async function within<T>(
  pool: Pool,
  project: number | string | undefined,
  work: (client: Transaction) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    if (project !== undefined) {
      for (const [name, value] of Object.entries(ofProject(project as number)))
        await client.query(`set local ${name} = '${value}'`);
    }
    return await work(client);
  } finally {
    await client.query('rollback');
    client.release();
  }
}

const rowsOf = (pool: Pool, project: number | string | undefined, text: string, values: unknown[] = []) =>
  within(pool, project, async (client) => (await client.query(text, values)).rows);

/** Returns why Postgres refuses a statement of the reader. */
const refusal = (text: string): Promise<string> =>
  rowsOf(database.reader, MINE, text).then(
    (rows) => `it did not: ${JSON.stringify(rows).slice(0, 200)}`,
    (error: Error) => error.message,
  );

describe('SQL without a condition on the project', () => {
  const texts = [
    ...READABLE.map((table) =>
      table === 'cohort_people'
        ? `select project_id, case when cohort_id = ${THEIRS} then 'secret' else 'mine' end as row from cohort_people`
        : `select project_id, t::text as row from ${table} t`,
    ),
    'select e.project_id, concat(e::text, p::text) as row from events e cross join persons p',
    'select e.project_id, concat(e::text, g::text) as row from events e full join groups g on g.group_key = e.group_0',
    'select p.project_id, s::text as row from persons p left join sessions s on true',
    'with all_of_them as materialized (select * from events) select project_id, properties::text as row from all_of_them',
    'select p.project_id, e.row from persons p cross join lateral (select e::text as row from events e where e.project_id >= p.project_id) as e',
    'select project_id, (select string_agg(p::text, $$,$$) from persons p) as row from groups',
    'select project_id, properties::text as row from events union all select project_id, properties::text from persons',
    `select s.team_id as project_id, s::text as row from (values (${MINE}), (${THEIRS})) as p (id) cross join lateral sessions_changed(p.id, '-infinity', 'infinity') as s`,
    `select s.team_id as project_id, s::text as row from (values (${MINE}), (${THEIRS})) as p (id) cross join lateral sessions_begun(p.id, '-infinity', 'infinity') as s`,
    `select s.team_id as project_id, s::text as row from (values (${MINE}), (${THEIRS})) as p (id) cross join lateral sessions_by_id(p.id, array(select session_id from events), null) as s`,
  ];

  test.each(texts)('%s', async (text) => {
    const all = await rowsOf(database.pool, MINE, text);
    const seen = await rowsOf(database.reader, MINE, text);
    // The owner of the tables sees both projects, so the text would have shown them.
    expect(JSON.stringify(all)).toMatch(/secret/);
    expect(seen.length).toBeGreaterThan(0);
    expect([...new Set(seen.map((row) => row.project_id))]).toEqual([MINE]);
    expect(JSON.stringify(seen)).not.toMatch(/secret/);
  });

  test.each([undefined, ''])('sees nothing if the transaction names no project (%p)', async (project) => {
    for (const table of READABLE)
      expect(await rowsOf(database.reader, project, `select * from ${table}`)).toEqual([]);
  });

  test('the project of a transaction ends with it', async () => {
    const client = await database.reader.connect();
    try {
      await client.query(`begin; set local sluice.project = '${THEIRS}'; select 1; commit`);
      expect((await client.query('select * from events')).rows).toEqual([]);
    } finally {
      client.release();
    }
  });
});

describe('a printer that forgets the project', () => {
  const sources = [
    'select properties, person.properties, distinct_id from events',
    'select e.properties, p.properties from events e cross join persons p',
    'select properties from events where distinct_id in (select distinct_id from person_distinct_ids)',
    'with x as (select properties as one from events) select one from x',
    'select group_0.properties, session.$urls, pdi.person.properties from events',
    'select $urls, distinct_id from sessions',
    'select properties from groups union all select properties from persons',
  ];
  const statementOf = async (source: string) =>
    printStatement((await parser.select(source)) as SelectNode, {
      schema: createSchema('current'),
      projectId: MINE,
      timezone: 'UTC',
      source,
    });

  test.each(sources)('%s', async (source) => {
    const whole = await statementOf(source);
    withoutGuard();
    const open = await statementOf(source);
    const show = async (pool: Pool, { text, values }: typeof open) =>
      JSON.stringify(await rowsOf(pool, MINE, text, values));
    // The first wall alone, then none, then the second alone.
    expect(await show(database.pool, whole)).toMatch(/open/);
    expect(await show(database.pool, whole)).not.toMatch(/secret/);
    expect(await show(database.pool, open)).toMatch(/secret/);
    expect(await show(database.reader, open)).toMatch(/open/);
    expect(await show(database.reader, open)).not.toMatch(/secret/);
  });

  test.each([
    ['events', null],
    ['events', 'select properties from events where event is not null'],
    ['persons', null],
    ['persons', 'select properties from persons where distinct_id is not null'],
  ] as const)('previews of %s stay within the project, with the query %j', async (model, hogqlQuery) => {
    withoutGuard();
    const end = Date.parse('2100-01-01');
    const query = await queryOf(parser, {
      model,
      hogqlQuery,
      projectId: MINE,
      interval: { start: null, end },
    });
    expect(JSON.stringify(await previewRows(database.pool, query, 100, { timeoutMs: PATIENCE }))).toMatch(
      /secret/,
    );
    const { rows } = await previewRows(database.reader, query, 100, { timeoutMs: PATIENCE });
    expect(rows.length).toBeGreaterThan(0);
    expect(JSON.stringify(rows)).not.toMatch(/secret/);
  });
});

test.each(MODEL_NAMES)('a statement over the %s of another project finds nothing', async (model) => {
  const interval = { start: null, end: Date.parse('2100-01-01') };
  const theirs = await queryOf(parser, { model, projectId: THEIRS, interval });
  const query = { ...theirs, settings: { ...theirs.settings, ...ofProject(MINE) } };
  const show = (pool: Pool) => previewRows(pool, query, 100, { timeoutMs: PATIENCE });
  expect(JSON.stringify(await show(database.pool))).toMatch(/secret/);
  expect((await show(database.reader)).rows).toEqual([]);
});

describe('the reader', () => {
  test('reads no other table, and no partition', async () => {
    const { rows } = await database.pool.query(
      `select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relkind in ('r', 'p', 'v', 'm', 'S', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'`,
    );
    const names = rows.map((row) => row.name).filter((name) => !READABLE.includes(name));
    expect(names).toEqual(
      expect.arrayContaining(['projects', 'batch_exports', 'database_roles', 'events_default']),
    );
    for (const name of names) {
      expect([name, await refusal(`select count(*) from ${name}`)]).toEqual([
        name,
        name.startsWith('sluice_sql.')
          ? 'permission denied for schema sluice_sql'
          : `permission denied for ${await kindOf(name)} ${name}`,
      ]);
    }
  });

  const kindOf = async (name: string) => {
    const { rows } = await database.pool.query('select relkind from pg_class where oid = $1::regclass', [
      name,
    ]);
    return { v: 'view', S: 'sequence' }[rows[0].relkind as string] ?? 'table';
  };

  test('reads nothing of Postgres that shows other projects', async () => {
    for (const table of ['pg_authid', 'pg_statistic', 'pg_user_mapping', 'pg_largeobject', 'pg_subscription'])
      expect([table, await refusal(`select * from ${table}`)]).toEqual([
        table,
        expect.stringMatching(/^permission denied/),
      ]);
    // The superuser sees what values are common in the columns of all projects.
    const common = `select * from pg_stats where schemaname = 'public' and tablename ~ '^(events|persons|groups)'`;
    expect(JSON.stringify(await rowsOf(database.pool, MINE, common))).toMatch(/secret/);
    expect(await rowsOf(database.reader, MINE, common)).toEqual([]);
    expect(await refusal('select query from pg_stat_activity')).toMatch(/^permission denied for function/);
  });

  test('is not the fault of a user if it lacks a right', async () => {
    const written = { filters: null, hogql_query: 'select event from events' };
    const error = await database.reader.query('select * from projects').catch((thrown: Error) => thrown);
    expect((error as { code?: string }).code).toBe('42501');
    expect([refusesQuery(error), queryFault(error, written)]).toEqual([false, error]);
    // A column that is not there is.
    const wrong = await database.reader.query('select nothing from events').catch((thrown: Error) => thrown);
    expect(refusesQuery(wrong)).toBe(true);
  });

  test.each([
    'delete from events',
    `update persons set properties = '{}'`,
    'insert into groups select * from groups',
    'truncate events',
    'lock table events in access exclusive mode',
    'create table mine (n integer)',
    'create temporary table mine (n integer)',
    'create schema mine',
    'create function mine() returns integer language sql as $$ select 1 $$',
    'alter table events disable row level security',
    'drop policy of_project on events',
    'create policy mine on events using (true)',
    'select lo_create(0)',
    'create role mine',
  ])('does not %s', async (text) => {
    expect(await refusal(text)).toMatch(/permission denied|must be owner|read-only transaction/);
    // Neither in a transaction that may write.
    expect(await refusal(`set transaction read write; ${text}`)).toMatch(/permission denied|must be owner/);
  });

  test('takes on no other role', async () => {
    const { rows } = await database.pool.query('select current_user as admin');
    const { rows: roles } = await database.pool.query(
      `select quote_ident(rolname) as name from pg_roles where rolname ~ '^sluice_.*_(owner|server)$'`,
    );
    expect(roles.length).toBeGreaterThanOrEqual(2);
    for (const name of [rows[0].admin, 'pg_read_all_data', ...roles.map((one) => one.name)]) {
      expect(await refusal(`set role ${name}`)).toMatch(/^permission denied to set role/);
      expect(await refusal(`set session authorization ${name}`)).toMatch(/^permission denied to set session/);
    }
    expect(await refusal('set local row_security = off; select * from events')).toMatch(
      /would be affected by row-level security/,
    );
  });

  test('changes no setting from a query, runs no text, and reaches nobody else', async () => {
    for (const text of [
      `select set_config('sluice.project', '${THEIRS}', true)`,
      `select event from events where set_config('sluice.project', '${THEIRS}', true) = '${THEIRS}'`,
      `select query_to_xml('select * from events', true, true, '')`,
      `select ts_stat('select to_tsvector(event) from events')`,
      `select pg_notify('sluice_projects', '1')`,
      'select pg_advisory_lock(1)',
      'select pg_sleep(0)',
      'select pg_terminate_backend(pg_backend_pid())',
    ]) {
      expect([text, await refusal(text)]).toEqual([
        text,
        expect.stringMatching(/^permission denied for function/),
      ]);
    }
    expect(
      await refusal(`update pg_settings set setting = '${THEIRS}' where name = 'sluice.project'`),
    ).toMatch(/denied|read-only/);
    for (const text of [
      `select pg_read_file('/etc/passwd')`,
      `select lo_import('/etc/passwd')`,
      `copy events to '/tmp/x'`,
    ])
      expect([text, await refusal(text)]).toEqual([text, expect.stringMatching(/denied/)]);
    const { rows } = await database.reader.query(
      `select p.oid::regprocedure::text as name from pg_proc p
       where p.proname ~ $1 and has_function_privilege(p.oid, 'execute')`,
      [`^(${CLOSED.join('|')})$`],
    );
    expect(rows).toEqual([]);
  });

  test('works read-only unless somebody says otherwise', async () => {
    const [row] = await rowsOf(
      database.reader,
      MINE,
      `select current_setting('transaction_read_only') as set`,
    );
    expect(row).toEqual({ set: 'on' });
  });

  test('sees no plan that tells how many rows others have', async () => {
    const plan = async (project: number) => {
      const rows = await rowsOf(
        database.reader,
        project,
        `explain (analyze, format json) select * from events where timestamp >= '${AT}'`,
      );
      return rows[0]['QUERY PLAN'][0].Plan['Actual Rows'];
    };
    expect([await plan(MINE), await plan(THEIRS), await plan(3)]).toEqual([3, 3, 0]);
  });
});

test('the owner of the tables is held by no row-level security', async () => {
  const { rows } = await database.pool.query(
    `select relname, relrowsecurity, relforcerowsecurity from pg_class
     where relnamespace = 'public'::regnamespace and relname = any($1) and relkind <> 'v' order by relname`,
    [READABLE],
  );
  expect(rows.map((row) => row.relname)).toEqual(READABLE.filter((name) => name !== 'sessions').toSorted());
  expect(rows.every((row) => row.relrowsecurity && !row.relforcerowsecurity)).toBe(true);
});

test('every view shows what the user who asks may see', async () => {
  const { rows } = await database.pool.query(
    `select relname, reloptions from pg_class where relnamespace = 'public'::regnamespace and relkind = 'v'`,
  );
  expect(rows).toEqual([{ relname: 'sessions', reloptions: ['security_invoker=true'] }]);
});

test('a query cannot fill the disk with temporary files', async () => {
  expect(await rowsOf(database.reader, undefined, 'show temp_file_limit')).toEqual([
    { temp_file_limit: '10GB' },
  ]);
  await expect(rowsOf(database.reader, undefined, "set local temp_file_limit = '-1'")).rejects.toMatchObject({
    code: '42501',
  });
});
