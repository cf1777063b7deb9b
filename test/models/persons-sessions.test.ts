import { describe, expect, test } from '@jest/globals';
import { deletePersons } from '../../db/person-deletions.ts';
import { transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import type { ModelOptions } from '../../models/index.ts';
import { databaseForFile } from '../support/database.ts';
import { insertEvents } from '../support/rows.ts';
import { END, parserForFile, planOfQuery, queryOf, rowsOf, START } from './support.ts';

const database = databaseForFile();
const parser = parserForFile();
const at = (minutes: number) => new Date(START + minutes * 60_000).toISOString();
const PROJECT = 1;

async function person(
  name: string,
  changed: string,
  ids: Record<string, number>,
  given: { project?: number; version?: number } = {},
) {
  const id = uuidv7();
  const project = given.project ?? PROJECT;
  await database.pool.query('insert into persons values ($1, $2, $3, true, $4, $5, $6)', [
    project,
    id,
    '2025-01-01T00:00:00Z',
    { name },
    given.version ?? 3,
    changed,
  ]);
  for (const [distinctId, version] of Object.entries(ids)) {
    await database.pool.query('insert into person_distinct_ids values ($1, $2, $3, $4, $5)', [
      ...[project, distinctId, id, version, changed],
    ]);
  }
  return id;
}

const persons = async (options: Partial<ModelOptions> = {}) =>
  (await rowsOf(database.pool, await queryOf(parser, { model: 'persons', ...options })))
    .map((row): Record<string, unknown> => ({ ...row, properties: JSON.parse(row.properties as string) }))
    .sort((a, b) => (String(a.distinct_id) < String(b.distinct_id) ? -1 : 1));

describe('persons', () => {
  test('that changed in the interval, with all their distinct ids, as they are now', async () => {
    const ann = await person('ann', at(0), { 'ann-1': 0, 'ann-2': 7 });
    await person('early', '2026-03-02T09:59:59.999999Z', { early: 0 });
    await person('late', new Date(END).toISOString(), { late: 0 });
    await person('elsewhere', at(1), { elsewhere: 0 }, { project: 2 });
    await person('nobody', at(1), {});
    const rows = await persons();
    expect(rows).toEqual(
      ['ann-1', 'ann-2'].map((distinctId, index) => ({
        ...{ team_id: PROJECT, distinct_id: distinctId, person_id: ann, properties: { name: 'ann' } },
        ...{ person_distinct_id_version: index * 7, person_version: 3, created_at: '2025-01-01T00:00:00Z' },
        ...{ is_deleted: false, _inserted_at: '2026-03-02T10:00:00Z' },
      })),
    );
    expect((await persons({ interval: { start: null, end: START } })).map((row) => row.distinct_id)).toEqual([
      'early',
    ]);
    const postgres = await persons({ columnSet: 'tables' });
    expect(postgres.map(({ _inserted_at, ...row }) => [_inserted_at, row.distinct_id])).toEqual([
      [undefined, 'ann-1'],
      [undefined, 'ann-2'],
    ]);
  });

  test('that were deleted are told of, unless their distinct id is somebody else by now', async () => {
    const gone = await person('gone', at(2), { 'gone-1': 0, 'gone-2': 4 }, { version: 9 });
    await transaction(database.pool, (client) => deletePersons(client, PROJECT, { ids: [gone] }));
    // As if it had been done in the interval.
    await database.pool.query('update deleted_distinct_ids set changed_at = $1', [at(3)]);
    const told = async () => (await persons()).filter((row) => String(row.distinct_id).startsWith('gone'));
    expect(await told()).toEqual(
      ['gone-1', 'gone-2'].map((distinctId, index) => ({
        ...{ team_id: PROJECT, distinct_id: distinctId, person_id: gone, properties: {} },
        ...{
          person_distinct_id_version: index * 4 + 1,
          person_version: 10,
          created_at: '2025-01-01T00:00:00Z',
        },
        ...{ is_deleted: true, _inserted_at: '2026-03-02T10:03:00Z' },
      })),
    );
    const back = await person('back', at(5), { 'gone-1': 2 });
    expect((await told()).map((row) => [row.distinct_id, row.is_deleted, row.person_id])).toEqual([
      ['gone-1', false, back],
      ['gone-2', true, gone],
    ]);
    // Changed once more, later: then it is in that interval.
    await database.pool.query('update persons set changed_at = $2 where id = $1', [
      back,
      new Date(END).toISOString(),
    ]);
    expect((await told()).map((row) => row.distinct_id)).toEqual(['gone-2']);
  });

  test('of a query: its columns, and those that pass its condition', async () => {
    const paula = await person('paula', at(7), { 'paula-1': 0, 'paula-2': 1 });
    await person('peter', at(8), { 'peter-1': 0 });
    await person('paula', new Date(END).toISOString(), { 'paula-late': 0 });
    await person('paula', at(7), { 'paula-theirs': 0 }, { project: 2 });
    const hogqlQuery = `select id, distinct_id as alias, upper(properties.name) as name, person_version + 1 as next,
      is_identified, person_id = id as same, properties.none as none from persons where properties.name = 'paula'`;
    const query = await queryOf(parser, { model: 'persons', hogqlQuery });
    expect(query.columns.map(({ name, type }) => `${name}:${type}`)).toEqual([
      ...[
        'id:uuid',
        'alias:string',
        'name:string',
        'next:int64',
        'is_identified:bool',
        'same:bool',
        'none:string',
      ],
    ]);
    const rows = await rowsOf(database.pool, query);
    const row = { id: paula, name: 'PAULA', next: 4, is_identified: true, same: true, none: null };
    expect(rows.toSorted((a, b) => (String(a.alias) < String(b.alias) ? -1 : 1))).toEqual([
      { ...row, alias: 'paula-1' },
      { ...row, alias: 'paula-2' },
    ]);
  });

  test('of a query can be deletions, of which less is known', async () => {
    const gone = await person('left', at(2), { 'left-1': 0 });
    await transaction(database.pool, (client) => deletePersons(client, PROJECT, { ids: [gone] }));
    await database.pool.query('update deleted_distinct_ids set changed_at = $1 where person_id = $2', [
      at(3),
      gone,
    ]);
    const hogqlQuery = `select distinct_id, is_deleted, is_identified, properties.name as name, properties from persons
      where is_deleted and id = '${gone}'`;
    const rows = await rowsOf(database.pool, await queryOf(parser, { model: 'persons', hogqlQuery }));
    expect(rows).toEqual([
      { distinct_id: 'left-1', is_deleted: true, is_identified: null, name: null, properties: '{}' },
    ]);
  });

  test('are found by the index on their changes', async () => {
    await database.pool.query(
      `insert into persons select 9, gen_random_uuid(), now(), false, '{}', 0, $1::timestamptz - n * interval '1 minute'
       from generate_series(1, 20000) n`,
      [at(0)],
    );
    await database.pool.query(
      "insert into person_distinct_ids select 9, 'u' || row_number() over (), id, 0, now() from persons where project_id = 9",
    );
    await database.pool.query('vacuum analyze persons, person_distinct_ids, deleted_distinct_ids');
    const query = await queryOf(parser, {
      ...{ model: 'persons', projectId: 9 },
      interval: { start: START - 3_600_000, end: START },
    });
    const nodes = await planOfQuery(database.pool, query);
    expect(nodes.map((node) => node['Index Name'])).toContain('persons_changed_at');
    const read = nodes
      .filter((node) => node['Relation Name'] === 'persons')
      .map((node) => node['Actual Rows']);
    expect(read).toEqual([60]);
    expect(
      nodes.filter(
        (node) => node['Node Type'] === 'Seq Scan' && node['Relation Name'] !== 'deleted_distinct_ids',
      ),
    ).toEqual([]);
  });
});

describe('sessions', () => {
  test('of which an event came in within the interval, whole', async () => {
    const id = (minutes: number) => {
      const hex = (START + minutes * 60_000).toString(16).padStart(12, '0');
      return `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-000000000000`;
    };
    const [running, over, other] = [id(-30), id(-40), id(-50)];
    const event = (session_id: string, minutes: number, inserted = minutes, project_id = 1) => ({
      ...{ project_id, session_id, timestamp: at(minutes), inserted_at: at(inserted) },
      properties: { $current_url: `https://example.com/${minutes}` },
    });
    await insertEvents(database.pool, [
      ...[event(running, -30), event(running, -10), event(running, 5)],
      ...[event(over, -40), event(over, -35)],
      ...[event(other, -50, 1, 2)],
    ]);
    const sessions = async (options: Partial<ModelOptions> = {}) =>
      rowsOf(database.pool, await queryOf(parser, { model: 'sessions', ...options }));
    const [session, ...rest] = await sessions();
    expect(rest).toEqual([]);
    expect(session).toMatchObject({
      ...{
        session_id: running,
        session_id_v7: running,
        team_id: 1,
        distinct_id: 'user-1',
        pageview_count: 3,
      },
      ...{ start_timestamp: '2026-03-02T09:30:00Z', end_timestamp: '2026-03-02T10:05:00Z', duration: 2_100 },
      ...{
        urls: ['https://example.com/-30', 'https://example.com/-10', 'https://example.com/5'],
        num_uniq_urls: 3,
      },
      ...{
        entry_pathname: '/-30',
        exit_pathname: '/5',
        is_bounce: false,
        _inserted_at: '2026-03-02T10:05:00Z',
      },
    });
    const hogqlQuery = `select session_id, $pageview_count as views, pageview_count, end_timestamp = $end_timestamp as same,
      $entry_utm_source as utm, arrayElement(urls, 1) as landing, team_id from sessions where duration > 1000`;
    const asked = await queryOf(parser, { model: 'sessions', hogqlQuery });
    expect(asked.columns.map(({ name, type }) => `${name}:${type}`)).toEqual([
      ...[
        'session_id:string',
        'views:int64',
        'pageview_count:int32',
        'same:bool',
        'utm:string',
        'landing:string',
      ],
      'team_id:int32',
    ]);
    expect(await rowsOf(database.pool, asked)).toEqual([
      {
        ...{ session_id: running, views: 3, pageview_count: 3, same: true, utm: null, team_id: 1 },
        landing: 'https://example.com/-30',
      },
    ]);
    expect(await sessions({ hogqlQuery: 'select session_id from sessions where duration < 1000' })).toEqual(
      [],
    );
    const before = await sessions({ interval: { start: null, end: START } });
    expect(before.map((row) => row.session_id).sort()).toEqual([over, running].sort());
    expect((await sessions({ projectId: 2 })).map((row) => [row.session_id, row._inserted_at])).toEqual([
      [other, '2026-03-02T10:01:00Z'],
    ]);
    // A clock that is ahead: `_inserted_at` is no earlier than the end.
    await insertEvents(database.pool, [{ ...event(other, 30, 6, 2) }]);
    expect((await sessions({ projectId: 2 }))[0]?._inserted_at).toBe('2026-03-02T10:30:00Z');
  });
});
