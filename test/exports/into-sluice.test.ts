import { beforeAll, expect, test } from '@jest/globals';
import { uuidv7 } from '../../db/uuid.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { faultProxyForFile } from '../support/fault-proxy.ts';
import { type Program, programsForFile } from '../support/programs.ts';
import { exportWorldForFile, fillHour, hour } from './support.ts';
import { operatorForFile } from './whole-run.ts';

const programs = programsForFile();
const world = exportWorldForFile({ worker: false });
const operator = operatorForFile(programs, world);
// Another Sluice, with a database of its own.
const receiver = apiForFile();
let base = '';
const proxy = faultProxyForFile(() => base);
let worker: Program;
const DAY = 86_400_000;

const startWorker = async () => {
  const program = programs.start('worker/main.ts', world.variables);
  await eventually(async () => program.output().includes('the worker polls'));
  return program;
};
beforeAll(async () => {
  base = await receiver.app.listen({ port: 0, host: '127.0.0.1' });
  worker = await startWorker();
});

/** An export to a new project of the receiver. */
async function chained(config: object = {}, fields: object = {}): Promise<{ path: string; there: Tenant }> {
  const there = await receiver.createTenant('Receiver');
  const settings = { url: `${proxy.endpoint}/batch/`, token: there.projectToken, ...config };
  return { there, path: await operator.create('HTTP', settings, fields) };
}
const EVENTS = `select uuid::text, event, distinct_id, timestamp, properties, elements_chain, session_id, person_mode
  from events where project_id = $1 order by uuid`;
const PERSONS = `select d.distinct_id, p.properties, p.is_identified,
    array(select o.distinct_id from person_distinct_ids o where o.person_id = p.id order by 1) as known_as
  from person_distinct_ids d join persons p on p.project_id = d.project_id and p.id = d.person_id
  where d.project_id = $1 order by 1`;
const uuidsAt = async ({ projectId }: Tenant) =>
  (await receiver.pool.query(EVENTS, [projectId])).rows.map((row) => row.uuid);

/** Events as they come in, through the API. */
async function capture(batch: object[]): Promise<void> {
  const answer = await fetch(`${operator.api.url}/batch/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ api_key: operator.tenant.projectToken, batch }),
  });
  expect(answer.status).toBe(200);
}

test('what one Sluice has another one has: events and whom they make', async () => {
  const at = (milliseconds: number) => new Date(Date.now() - milliseconds).toISOString();
  const event = (name: string, distinct_id: string, properties: object = {}, timestamp = at(60_000)) => ({
    ...{ uuid: uuidv7(), event: name, distinct_id, timestamp, properties },
  });
  const session = uuidv7();
  await capture([
    event('シェア', 'ключ-é-😀', { 'naïve "quoted"\\': '\u2028 tab\t \ud83d\ude00', rtl: 'שלום' }),
    event('nulls', 'u1', { nothing: null, empty: '', none: {}, list: [null, 1.5, -0.001, 1e21, true] }),
    event('numbers', 'u1', { large: 12345678901234567000, deep: { a: { b: { c: [{ d: 1 }] } } } }),
    event('cleaned', 'u1', { text: 'a\u0000b', half: '\ud800' }),
    event('big', 'u1', { text: 'x'.repeat(1_000_000) }),
    event('bigger', 'u1', { text: 'é'.repeat(2_600_000) }),
    event('anonymous', 'nobody', { $process_person_profile: false, $set: { name: 'left out' } }),
    event('$pageview', 'anon-1', { $session_id: session, $current_url: 'https://example.com/?utm_source=x' }),
    event('$identify', 'ann', {
      $anon_distinct_id: 'anon-1',
      $set: { name: 'Ann', age: 3 },
      $set_once: { b: 1 },
    }),
    event('$set', 'ann', { $set: { age: 4 }, $unset: ['b'] }),
    event('$create_alias', 'ann', { alias: 'ann@example.com' }),
    event('$groupidentify', 'ann', { $group_type: 'company', $group_key: 'c1', $group_set: { n: 1 } }),
    event('bought', 'ann', { $groups: { company: 'c1' } }),
    event('$autocapture', 'ann', { $elements: [{ tag_name: 'a', text: 'go', nth_child: 1 }] }),
    event('precise', 'u1', {}, at(60_000).replace(/\.(\d{3})Z$/, '.$1Z')),
    event('offset', 'u1', {}, '2026-11-01T12:00:00.123+05:30'),
    event('old', 'u1', { n: 1 }, at(3 * DAY)),
    event('on the edge', 'u1', { n: 1 }, at(2 * DAY + 1_000)),
    event('of tomorrow', 'u1', { n: 1 }, at(-DAY)),
  ]);
  const { path, there } = await chained();
  const exportNow = async () => {
    const { workflow_id: id } = await operator.ask('POST', `${path}run/`, { partial: true });
    return operator.lastRun(path, id);
  };
  const run = await exportNow();
  expect(run).toMatchObject({ status: 'Completed', records_completed: 19, records_failed: 0 });

  const sent = (await world.pool.query(EVENTS, [operator.tenant.projectId])).rows;
  const stored = (await receiver.pool.query(EVENTS, [there.projectId])).rows;
  expect(sent).toHaveLength(19);
  const marked = sent.map((row) => ({ ...row, properties: { ...row.properties, $geoip_disable: true } }));
  expect(stored).toEqual(marked);
  const persons = (await world.pool.query(PERSONS, [operator.tenant.projectId])).rows;
  expect(persons.map((row) => row.distinct_id)).toEqual(expect.arrayContaining(['ann', 'anon-1', 'u1']));
  expect((await receiver.pool.query(PERSONS, [there.projectId])).rows).toEqual(persons);
  const sessions = 'select * from sessions_by_id($1, array[$2], array[null::tstzmultirange])';
  const [ours, theirs] = await Promise.all([
    world.pool.query(sessions, [operator.tenant.projectId, session]),
    receiver.pool.query(sessions, [there.projectId, session]),
  ]);
  const { _inserted_at: _when, team_id: _team, ...of } = theirs.rows[0];
  expect(ours.rows[0]).toMatchObject({ ...of, pageview_count: 1 });

  // Sent again, all of it is there already.
  expect(await exportNow()).toMatchObject({ status: 'Completed', records_completed: 19 });
  expect((await receiver.pool.query(EVENTS, [there.projectId])).rows).toEqual(marked);
  expect((await receiver.pool.query(PERSONS, [there.projectId])).rows).toEqual(persons);
});

test('other models are not for this way', async () => {
  for (const model of ['persons', 'sessions']) {
    await expect(chained({}, { model })).rejects.toThrow(
      /answered 400: .*HTTP batch exports only support the events model/,
    );
  }
});

test('a receiver that is overloaded, refuses for now, and whose answers get lost', async () => {
  const uuids = (await fillHour(world.pool, 0, 12_000, operator.tenant.projectId)).sort();
  const { path, there } = await chained();
  const troubles = ['503', 'lost', '429', 'reset'];
  const met: string[] = [];
  proxy.harm = (_request, response, forward) => {
    const trouble = troubles.shift();
    if (!trouble) return forward();
    met.push(trouble);
    if (trouble === '503') response.writeHead(503).end('not now');
    else if (trouble === '429') response.writeHead(429, { 'retry-after': '1' }).end('slowly');
    else if (trouble === 'reset') response.destroy();
    else {
      const { socket } = response;
      // What is asked for is done, and the answer finds nobody.
      response.writeHead = (() => {
        socket?.destroy();
        return response;
      }) as typeof response.writeHead;
      forward();
    }
  };
  const run = await operator.run(path, hour(0));
  expect(run).toMatchObject({ status: 'Completed', records_completed: 12_000, records_failed: 0 });
  expect(met).toEqual(['503', 'lost', '429', 'reset']);
  expect(await uuidsAt(there)).toEqual(uuids);
});

test('a wrong token: the operator must act, is told so, and then it goes on', async () => {
  const uuids = (await fillHour(world.pool, 2, 10, operator.tenant.projectId)).sort();
  const { path, there } = await chained({ token: 'phc_canary_of_another_token' });
  const run = await operator.run(path, hour(2));
  expect(run.status).toBe('Failed');
  expect(run.latest_error).toMatch(
    /^HTTP http:\/\/127.*\/batch\/: the receiver answered 401 .*set token to a project key/,
  );
  expect(run.latest_error).not.toContain('canary');
  const { events } = await world.client.workflow.getHandle(run.workflow_id).fetchHistory();
  const attempts = (events ?? []).map((one) => one.activityTaskStartedEventAttributes?.attempt ?? 0);
  expect(Math.max(...attempts)).toBe(1);
  await operator.ask('PATCH', path, { destination: { type: 'HTTP', config: { token: there.projectToken } } });
  expect(await operator.retry(path, run)).toMatchObject({ status: 'Completed', records_completed: 10 });
  expect(await uuidsAt(there)).toEqual(uuids);
});

test('an event that the receiver does not take is kept apart, counted and named', async () => {
  const uuids = await fillHour(world.pool, 3, 2_000, operator.tenant.projectId);
  const [bad, ...good] = uuids.reverse();
  const { path, there } = await chained();
  proxy.harm = async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    if (body.includes(bad as string)) return response.writeHead(400).end('{"detail":"not this one"}');
    const { status } = await fetch(`${base}/batch/`, {
      ...{ method: 'POST', headers: { 'content-type': 'application/json' }, body },
    });
    return response.writeHead(status).end('{}');
  };
  const run = await operator.run(path, hour(3));
  expect(run).toMatchObject({ status: 'Completed', latest_error: null });
  expect(run).toMatchObject({ records_completed: 1_999, records_failed: 1, records_total_count: 2_000 });
  expect(await uuidsAt(there)).toEqual(good.sort());
  const { results } = await operator.ask('GET', `${path}runs/${run.id}/logs/?level=WARNING`);
  expect(results).toMatchObject([{ message: expect.stringMatching(`Left out ${bad}: .*400.*not this one`) }]);
});

test('a worker that is killed in the middle of it', async () => {
  const uuids = (await fillHour(world.pool, 4, 12_000, operator.tenant.projectId)).sort();
  const { path, there } = await chained();
  let requests = 0;
  proxy.harm = (_request, _response, forward) => {
    requests += 1;
    if (requests === 1) forward();
  };
  const { workflow_id: id } = await operator.ask('POST', `${path}run/`, { start_at: hour(4) });
  await eventually(async () => requests >= 2 && (await uuidsAt(there)).length > 0);
  expect((await uuidsAt(there)).length).toBeLessThan(12_000);
  const second = await startWorker();
  worker.kill('SIGKILL');
  proxy.harm = undefined;
  const run = await operator.lastRun(path, id);
  expect(run).toMatchObject({ status: 'Completed', records_completed: 12_000, records_failed: 0 });
  expect(await uuidsAt(there)).toEqual(uuids);
  second.kill('SIGTERM');
  expect((await second.exited).code).toBe(0);
});
