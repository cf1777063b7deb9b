// What holds for every model, whatever it is of. The registry lists them.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { CORE_TABLES } from '../../db/project-tables.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { MODEL_NAMES, modelOf } from '../../models/index.ts';
import { createTenant } from '../support/api.ts';
import { foreignDatabaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { postgresSettings } from '../support/postgres-settings.ts';
import { programsForFile } from '../support/programs.ts';
import { exportWorldForFile, FIRST, hour } from './support.ts';
import { operatorForFile } from './whole-run.ts';

const programs = programsForFile();
const world = exportWorldForFile();
const target = foreignDatabaseForFile();
const operator = operatorForFile(programs, world);

/** When everything happened that is exported: within the first hour. */
const AT = new Date(FIRST + 40 * 60_000).toISOString();
const hex = (FIRST + 60_000).toString(16).padStart(12, '0');

/** Events that make something of each model, all of whose texts begin with this word. */
const eventsOf = (word: string) => [
  {
    ...{ event: '$identify', distinct_id: `${word} user`, timestamp: AT },
    properties: { $set: { name: `${word} name` } },
  },
  {
    ...{ event: '$pageview', distinct_id: `${word} user`, timestamp: AT },
    properties: {
      $session_id: `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-00000000000${word.length}`,
      $current_url: `https://${word}.example/`,
    },
  },
  {
    ...{ event: '$groupidentify', distinct_id: `${word} user`, timestamp: AT },
    properties: { $group_type: `${word} type`, $group_key: `${word} key`, $group_set: { name: word } },
  },
];

beforeAll(async () => {
  const other = await createTenant(world.pool, 'Other');
  for (const [api_key, word] of [
    [operator.tenant.projectToken, 'open'],
    [other.projectToken, 'secret'],
  ] as const) {
    const batch = eventsOf(word).map((event) => ({ uuid: uuidv7(), ...event }));
    const answer = await fetch(`${operator.api.url}/batch/`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ api_key, batch }),
    });
    expect(answer.status).toBe(200);
  }
  // As if all of it had come in within the hour.
  const { rows } = await world.pool.query(
    `select c.relname as name, a.attname as column from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
       and c.relname = any($1) and a.attname in ('inserted_at', 'changed_at') and not a.attisdropped`,
    [CORE_TABLES.filter(({ kind }) => kind === 'data').map((table) => table.name)],
  );
  for (const { name, column } of rows) await world.pool.query(`update ${name} set ${column} = $1`, [AT]);
});

const nameOf = (n: number) => [n, n + 1].map((one) => hour(one).replace('.000Z', '+00:00')).join('-');

describe.each(MODEL_NAMES)('%s', (name) => {
  const model = modelOf(name);
  const linesOf = (folder: string): Record<string, unknown>[] =>
    readFileSync(
      path.join(world.root, '@projects', String(operator.tenant.projectId), folder, `${nameOf(0)}.jsonl`),
      'utf8',
    )
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line));

  test('goes to files, with its columns and nothing of another project, by default and by a query', async () => {
    const chosen = { [`${name}-all`]: { model: name }, [`${name}-asked`]: asked() };
    for (const [folder, fields] of Object.entries(chosen)) {
      const at = await operator.create('File', { directory: folder, file_format: 'JSONLines' }, fields);
      const run = await operator.run(at, hour(0));
      const rows = linesOf(folder);
      expect([run.status, run.latest_error, run.records_completed]).toEqual(['Completed', null, rows.length]);
      expect(rows.length).toBeGreaterThan(0);
      expect(JSON.stringify(rows)).toContain('open');
      expect(JSON.stringify(rows)).not.toContain('secret');
      const names = model.columns.files.map((column) => column.name);
      for (const row of rows) expect(Object.keys(row)).toEqual(names);
      expect((await operator.verify(at, { start_at: hour(0) })).verdict).toBe('same');
    }
    expect(linesOf(`${name}-asked`)).toEqual(linesOf(`${name}-all`));
    function asked() {
      return { hogql_query: `SELECT * FROM ${name} WHERE team_id = ${operator.tenant.projectId}` };
    }
  });

  test('goes to a table, and stays the same when it is sent again', async () => {
    const at = await operator.create('Postgres', postgresSettings(target.url, `every_${name}`), {
      model: name,
    });
    const rows = async () =>
      (await target.pool.query(`select * from every_${name} order by 1, 2, 3, 4`)).rows;
    expect((await operator.run(at, hour(0))).status).toBe('Completed');
    const first = await rows();
    expect(first.length).toBeGreaterThan(0);
    expect(Object.keys(first[0])).toEqual(model.columns.tables.map((column) => column.name));
    expect(JSON.stringify(first)).not.toContain('secret');
    expect((await operator.run(at, hour(0))).status).toBe('Completed');
    expect(await rows()).toEqual(first);
    expect((await operator.verify(at, { start_at: hour(0) })).verdict).toBe('same');
  });

  test('is filled from its first data on', async () => {
    const at = await operator.create('NoOp', {}, { model: name });
    const { backfill_id: id } = await operator.ask('POST', `${at}backfills/`, {
      ...{ start_at: hour(-9), end_at: hour(1) },
    });
    const backfill = await eventually(async () => {
      const found = await operator.ask('GET', `${at}backfills/${encodeURIComponent(id)}/`);
      return found.finished_at ? found : undefined;
    });
    expect(backfill).toMatchObject({ status: 'Completed', progress: { total_runs: 1 } });
    expect(Date.parse(backfill.adjusted_start_at)).toBe(FIRST);
    expect(backfill.total_records_count).toBeGreaterThan(0);
  });

  test('goes by HTTP if it has columns for that', async () => {
    const made = operator.create(
      'HTTP',
      { url: 'https://example.com/batch/', token: 'phc_1' },
      { model: name },
    );
    if (model.columns.capture) await made;
    else await expect(made).rejects.toThrow('HTTP batch exports only support the events model');
  });

  test('takes filters if its rows are events', async () => {
    const filters = [{ type: 'event', key: 'n', operator: 'exact', value: ['1'] }];
    const made = operator.create('NoOp', {}, { model: name, filters });
    if (model.isOfEvents) await made;
    else await expect(made).rejects.toThrow(`'filters' is only supported for 'events' not '${name}' model`);
  });
});
