import { beforeAll, expect, test } from '@jest/globals';
import type { Queryable } from '../../../db/pool.ts';
import { rerunPage } from '../../../functions/replay/rerun-page.ts';
import { listInvocations } from '../../../functions/rows/history.ts';
import { findReplay, type ReplayRow } from '../../../functions/rows/replays.ts';
import { nextEnded } from '../../../functions/rows/reruns.ts';
import { planOf } from '../../support/plans.ts';
import { rounds } from '../../support/rounds.ts';
import { runtimeForFile, sender } from './world.ts';

const world = runtimeForFile({ starts: false });
const MANY = rounds(60_000, 1_000_000);

/** The rows that each of the statements reads from tables that look at invocations. */
async function rowsRead(ask: (queryable: Queryable) => Promise<unknown>): Promise<number[]> {
  const read: number[] = [];
  const explaining = {
    query: async (text: string, values: unknown[]) => {
      const plan = await planOf(world.api.pool, text, values, { analyze: true });
      const ofTables = plan.filter((node) => node['Relation Name']?.startsWith('function_'));
      const rowsOf = (node: (typeof plan)[number]) =>
        ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1);
      read.push(ofTables.reduce((sum, node) => sum + rowsOf(node), 0));
      return world.api.pool.query(text, values);
    },
  };
  await ask(explaining as unknown as Queryable);
  return read;
}

const RARE = 'quota "ä" \\ used up';
const attempt = {
  ...{
    step: 0,
    attempt: 1,
    at: '2026-01-01T00:00:00Z',
    duration_ms: 5,
    method: 'POST',
    url: 'http://a.example/',
  },
  ...{ request_body: '{}', status: 500, response_body: RARE, error: null },
};
let functionId: string;
let rare: { id: string; open: boolean }[];
beforeAll(async () => {
  const { pool } = world.api;
  functionId = await world.create(sender(world.url()));
  // What the search finds is far apart.
  await pool.query(
    `insert into function_invocations (project_id, id, function_id, version, status, distinct_id, error, attempts, created_at, finished_at, dismissed_at)
     select $1, gen_random_uuid(), $2, 1,
       case when n % 10 = 0 then 'succeeded' when n = $3 - 7 then 'cancelled' else 'failed' end, 'd-' || n, 'It said 500',
       case when n % 20001 = 1 then $4 else '[]' end::json, at, at, case when n % 50 = 3 then at end
     from (select n, now() - n * interval '1 millisecond' as at from generate_series(1, $3) n) one`,
    [...[world.anna.projectId, functionId, MANY], JSON.stringify([attempt])],
  );
  await pool.query('analyze function_invocations');
  const { rows } = await pool.query(
    `select id, status = 'failed' and dismissed_at is null as open from function_invocations
     where attempts::text <> '[]' order by finished_at desc`,
  );
  rare = rows;
});

test(`of ${MANY} dead letters, a page is found without reading the others`, async () => {
  const { projectId } = world.anna;
  const key = { projectId, functionId, waiting: false, ascending: false, limit: 50 };
  const page = { value: new Date(Date.now() - MANY / 2).toISOString(), id: functionId };
  const read = (query: object) => rowsRead((queryable) => listInvocations(queryable, { ...key, ...query }));
  for (const query of [{ isOpen: true }, { isOpen: true, position: page }, {}]) {
    expect(Math.max(...(await read(query)))).toBeLessThan(1_000);
  }
  for (const query of [{ statuses: ['cancelled'] }, { statuses: ['failed'] }, { distinctId: 'd-0' }]) {
    expect(Math.max(...(await read(query)))).toBeLessThan(20_100);
  }
  for (const isOpen of [false, true]) {
    expect(Math.max(...(await read({ search: 'nothing', isOpen })))).toBeLessThan(5_100);
  }
  const rerun = {
    ...{ project_id: projectId, function_id: functionId, selection: { status: 'failed', search: null } },
    ...{ after: null, before: null, horizon: new Date().toISOString() },
    ...{ last_timestamp: page.value, last_id: page.id },
  } as ReplayRow;
  for (const status of ['failed', 'cancelled'] as const) {
    const row = { ...rerun, selection: { status, search: null } };
    expect(Math.max(...(await rowsRead((queryable) => nextEnded(queryable, row, 1_000))))).toBeLessThan(
      20_100,
    );
  }
});

const base = () => `/api/projects/${world.anna.projectId}/hog_functions/${functionId}/`;
interface Page {
  results: { id: string }[];
  next: string | null;
  previous: string | null;
}

test('a search goes through all of them page by page, and back', async () => {
  const pages: Page[] = [];
  let url: string | null = `${base()}invocations/?limit=2&search=${encodeURIComponent(RARE.toUpperCase())}`;
  const follow = async (direction: 'next' | 'previous') => {
    const found: string[] = [];
    while (url !== null) {
      const answer = await world.api.request(world.anna, 'GET', url);
      if (answer.statusCode !== 200) throw new Error(answer.body + url);
      const page: Page = answer.json();
      pages.push(page);
      found.push(...page.results.map(({ id }) => id));
      if (page[direction] === null) break;
      url = page[direction];
    }
    return found;
  };
  const ids = rare.map(({ id }) => id);
  expect(ids.length).toBeGreaterThan(2);
  expect(await follow('next')).toEqual(ids);
  expect(pages.some(({ results, next }) => results.length === 0 && next !== null)).toBe(true);
  // The end of the list may be an empty page, behind which nothing is.
  const at = pages.findLastIndex(({ previous }) => previous !== null);
  const before = pages.slice(0, at).flatMap(({ results }) => results.map(({ id }) => id));
  expect(before.length).toBeGreaterThan(0);
  url = pages[at]?.previous ?? null;
  expect((await follow('previous')).sort()).toEqual(before.sort());
});

test.each(['cancelled', 'failed'])(
  'those that are %s are found once, however many are not',
  async (status) => {
    const { rows } = await world.api.pool.query(
      'select count(*)::int as count from function_invocations where status = $1 and dismissed_at is null',
      [status],
    );
    const answer = await world.api.request(world.anna, 'POST', `${base()}rerun/`, {
      ...{ status, after: '2020-01-01T00:00:00Z', dry_run: true },
    });
    const row = (await findReplay(world.api.pool, {
      ...{ projectId: world.anna.projectId, replayId: answer.json().rerun_job_id },
    })) as ReplayRow;
    const started = { ...row, horizon: new Date().toISOString() };
    let counted = 0;
    for (let page = started; ; ) {
      const found = await rerunPage(world.api, page, { most: 100 });
      if (!found) break;
      counted += found.done.matched;
      page = { ...page, last_timestamp: found.done.lastTimestamp, last_id: found.done.lastId };
    }
    expect(counted).toBe(rows[0].count);
    await world.api.pool.query('delete from function_replays');
  },
);

test('a search dismisses all that it finds, request after request', async () => {
  const dismissed: number[] = [];
  for (let after: string | null | undefined; after !== null; ) {
    const body = { search: RARE, ...(after && { after }) };
    const answer = await world.api.request(world.anna, 'POST', `${base()}invocations/dismiss/`, body);
    const { dismissed_count, has_more, looked_at_before } = answer.json();
    expect(has_more).toBe(looked_at_before !== null);
    dismissed.push(dismissed_count);
    after = looked_at_before;
  }
  expect(dismissed.length).toBeGreaterThan(1);
  expect(dismissed.reduce((a, b) => a + b)).toBe(rare.filter(({ open }) => open).length);
});
