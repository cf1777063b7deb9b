// What a hostile or confused client writes: a clear answer, nothing of other projects, and no word of Postgres.
import { beforeAll, expect, test } from '@jest/globals';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = apiForFile();
let mallory: Tenant;
let anna: Tenant;

beforeAll(async () => {
  mallory = await api.createTenant('Mallory');
  anna = await api.createTenant('Anna');
  const events = (name: string) =>
    Array.from({ length: 20 }, (_, index) => capturedEvent({ index, event: name, distinct_id: name }));
  await api.ingest.submit({ projectId: mallory.projectId, events: events('own') });
  await api.ingest.submit({ projectId: anna.projectId, events: events('secret') });
});

const nested = (depth: number, open: string, inner: string, close: string) =>
  open.repeat(depth) + inner + close.repeat(depth);

const HOSTILE: Record<string, string> = {
  'nested 1,000 deep': `select ${nested(1_000, '(', '1', ')')} from events`,
  'nested subqueries': nested(200, 'select * from (', 'select event from events', ')'),
  'half a megabyte of conditions': `select 1 from events where ${'event = 1 or '.repeat(40_000)}true`,
  'half a megabyte of text': `select '${'x'.repeat(500_000)}' from events`,
  'a limit of 10^12': 'select event from events limit 1000000000000',
  'a limit that is no number': 'select event from events limit 1e300',
  'no such column': 'select password from persons',
  'a table of Postgres': 'select * from pg_shadow',
  'a schema of Postgres': 'select * from information_schema.tables',
  'another project': `select * from events where team_id = ${1}`,
  'a setting': "select current_setting('sluice.project') from events",
  'a change of the setting': "select set_config('sluice.project', '1', false) from events",
  'a file': "select pg_read_file('/etc/passwd') from events",
  'a sleep': 'select sleep(10), pg_sleep(10) from events',
  'a second statement': 'select 1 from events; drop table events',
  'a comment in a text': "select '--', '/*', '*/', $$x$$ from events",
  'quotes in names': 'select 1 as `a"b`, 2 as `a\'b`, 3 as `a\\`b` from events',
  recursion: 'with recursive a as (select 1 union all select 1 from a) select * from a',
  'a CTE that names itself': 'with a as (select * from a) select * from a',
  'a pattern that explodes': `select match('${'a'.repeat(3_000)}', '(a+)+(a+)+(a+)+$') from events`,
  'a pattern that is large': "select match(event, '(((a{99}){99}){99}){99}') from events",
  'types that do not fit': "select event + toDate('2026-01-01') * [1] from events",
  'an overflow': "select toInt('9223372036854775807') * 9 from events",
  'a time out of range': "select addYears(toDateTime('9999-01-01 00:00:00'), 300000) from events",
  'a factorial': 'select factorial(100000) from events',
  'a great text': "select repeat(repeat('x', 10000), 10000) from events",
  'half of a character': "select '\\ud800' from events",
  'a zero': "select 'a\\0b' from events",
  'many columns': `select ${Array.from({ length: 1_700 }, (_, n) => `${n}`).join(', ')} from events`,
};

test.each(Object.entries(HOSTILE))('%s', async (_name, query) => {
  const answer = await api.request(mallory, 'POST', `/api/projects/${mallory.projectId}/query/`, {
    query: { kind: 'HogQLQuery', query },
  });
  expect([200, 400]).toContain(answer.statusCode);
  expect(answer.body).not.toContain('secret');
  if (answer.statusCode === 200) return;
  const { detail, code, attr } = answer.json();
  expect([code, attr]).toEqual(['invalid_input', 'query']);
  expect(detail).not.toMatch(/SQLSTATE|relation "|column [a-z]\d|\bt\d+\./);
});

test('what takes too long is ended, and nothing is left of it', async () => {
  const numbers = '(select arrayJoin(range(100000)) as n from events)';
  const answer = await api.request(mallory, 'POST', `/api/projects/${mallory.projectId}/query/`, {
    query: { kind: 'HogQLQuery', query: `select count() from ${numbers} a cross join ${numbers} b` },
  });
  expect([answer.statusCode, answer.json().detail]).toEqual([
    400,
    expect.stringMatching(/longer than 15 seconds/),
  ]);
  const { rows } = await api.pool.query(
    `select count(*)::int as count from pg_stat_activity where state = 'active' and query like '%cross join%' and pid <> pg_backend_pid()`,
  );
  expect(rows[0].count).toBe(0);
});

test('a client that goes away ends its query', async () => {
  const numbers = '(select arrayJoin(range(100000)) as n from events)';
  const url = await api.app.listen({ port: 0, host: '127.0.0.1' });
  const controller = new AbortController();
  const asked = fetch(`${url}/api/projects/${mallory.projectId}/query/`, {
    method: 'POST',
    headers: { authorization: `Bearer ${mallory.key}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      query: { kind: 'HogQLQuery', query: `select count() from ${numbers} a cross join ${numbers} b` },
    }),
    signal: controller.signal,
  });
  const active = async () => {
    const { rows } = await api.pool.query(
      `select count(*)::int as count from pg_stat_activity where state = 'active' and query like 'fetch %'`,
    );
    return rows[0].count;
  };
  await eventually(async () => (await active()) === 1);
  controller.abort();
  await expect(asked).rejects.toThrow();
  await eventually(async () => (await active()) === 0);
});
