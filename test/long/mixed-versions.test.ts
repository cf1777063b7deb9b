import { rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { readMigrations } from '../../db/migrate.ts';
import { createPool, type Pool } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { type Postgres, startPostgres } from '../../stack/postgres.ts';
import { createTenant, type Tenant } from '../support/api.ts';
import { cacheDir, makeDataDir } from '../support/data-dir.ts';
import { eventually } from '../support/eventually.ts';
import { hasCommit, olderReleaseForFile } from '../support/older-release.ts';
import { reservePort } from '../support/ports.ts';
import { type ApiProgram, type Program, programsForFile } from '../support/programs.ts';
import { LONG } from '../support/rounds.ts';
import { allocateNamespace } from '../support/temporal.ts';

/** A release with four migrations less: before cancelled positions, forgotten persons and cohorts of exports. */
const OLDER = '5bc8e91d';
const isPossible = LONG && hasCommit(OLDER);
/** More wait than the queue of a function takes, so new ones are kept as positions. */
const FLOOD = 100_001;
const PEOPLE = 500;
const EARLIER = 2_000;

interface Arrival {
  path: string;
  key: string;
  id: string;
}

(isPossible ? describe : describe.skip)('workers and APIs of two versions over one database', () => {
  const older = isPossible ? programsForFile(olderReleaseForFile(OLDER)) : programsForFile();
  const newest = programsForFile();
  const arrivals: Arrival[] = [];
  /** Ids of persons for which two requests of the ordered function were under way at once. */
  const overlapping: string[] = [];
  let dataDir: string;
  let postgres: Postgres;
  let pool: Pool;
  let server: Server;
  let target: string;
  let anna: Tenant;
  let settings: Record<string, string>;

  beforeAll(async () => {
    dataDir = makeDataDir();
    postgres = await startPostgres({ dataDir, cacheDir, port: 0, database: 'mixed' });
    pool = createPool({ url: postgres.url, size: 2, name: 'test' });
    const port = await reservePort();
    target = `http://127.0.0.1:${port}`;
    const underWay = new Set<string>();
    server = createServer(async (request, response) => {
      let body = '';
      for await (const chunk of request) body += chunk;
      const path = (request.url as string).slice(1);
      const { id } = JSON.parse(body);
      arrivals.push({ path, key: request.headers['idempotency-key'] as string, id });
      if (path === 'ordered') {
        if (underWay.has(id)) overlapping.push(id);
        underWay.add(id);
      }
      setTimeout(() => {
        if (path === 'ordered') underWay.delete(id);
        response.end('{}');
      }, 10);
    });
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    const { address, namespace } = allocateNamespace();
    settings = {
      ...{ DATABASE_URL: postgres.url, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace },
      ...{ SLUICE_LOG_LEVEL: 'info', SLUICE_EGRESS_ALLOW: '127.0.0.1', SLUICE_FUNCTION_LEASE_SECONDS: '15' },
      SLUICE_ENCRYPTION_KEYS: `k1:${Buffer.alloc(32, 7).toString('base64')}`,
    };
  });
  afterAll(async () => {
    server?.closeAllConnections();
    server?.close();
    await pool?.end();
    await postgres?.stop();
    rmSync(dataDir, { recursive: true, force: true });
  });

  async function ask<T>(api: ApiProgram, method: string, path: string, body?: object): Promise<T> {
    const answer = await fetch(`${api.url}/api/projects/${anna.projectId}/hog_functions/${path}`, {
      method,
      headers: { authorization: `Bearer ${anna.key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    if (answer.status > 201) throw new Error(`${answer.status} ${await answer.text()}`);
    return (await answer.json()) as T;
  }
  const create = async (api: ApiProgram, path: string, event: string, what: string, more: object = {}) => {
    const { id } = await ask<{ id: string }>(api, 'POST', '', {
      ...{ type: 'destination', enabled: true, name: path },
      ...{ filters: { events: [{ id: event, type: 'events' }] } },
      ...{ hog: `fetch('${target}/${path}', {'body': {'id': ${what}}})`, ...more },
    });
    return id;
  };
  const at = (path: string) => arrivals.filter((one) => one.path === path);
  const startWorker = async (programs: typeof newest): Promise<Program> => {
    const worker = programs.start('worker/main.ts', settings);
    await eventually(async () => worker.output().includes('the worker polls'));
    return worker;
  };
  const left = async (table: string) =>
    Number((await pool.query(`select count(*) as count from ${table}`)).rows[0].count);

  test('each event arrives once at each function, whichever version takes it', async () => {
    const oldApi = await older.ready(await older.startApi(settings));
    anna = await createTenant(pool, 'Anna');
    let oldWorker = await startWorker(older);
    const applied = async () => Number((await pool.query('select max(id) as id from migrations')).rows[0].id);
    expect(await applied()).toBeLessThan(readMigrations().length);

    // Whom the broadcast is for, and what the replay is for.
    const send = async (api: ApiProgram, batch: object[]) => {
      const body = JSON.stringify({ api_key: anna.projectToken, batch });
      const answer = await fetch(`${api.url}/batch/`, { method: 'POST', body }).catch(() => undefined);
      return answer?.status === 200;
    };
    const earlier = Array.from({ length: EARLIER }, () => uuidv7());
    expect(
      await send(oldApi, [
        ...Array.from({ length: PEOPLE }, (_, n) => ({
          ...{ event: '$identify', distinct_id: `p-${n}`, properties: { $set: { n } } },
        })),
        ...earlier.map((uuid) => ({ uuid, event: 'earlier', distinct_id: 'p-0' })),
      ]),
    ).toBe(true);

    const functions = {
      plain: await create(oldApi, 'plain', 'paid', 'event.uuid'),
      masked: await create(oldApi, 'masked', 'paid', 'event.distinct_id', {
        masking: { ttl: 86_400, threshold: null, hash: '{event.distinct_id}' },
      }),
      ordered: await create(oldApi, 'ordered', 'paid', 'event.distinct_id', {
        delivery: { ordering: 'distinct_id' },
      }),
      flooded: await create(oldApi, 'flooded', 'paid', 'event.uuid', { paused: true }),
      past: await create(oldApi, 'past', 'earlier', 'event.uuid'),
      people: await create(oldApi, 'people', 'nothing', 'event.distinct_id'),
    };
    await pool.query(
      `insert into function_queue (id, project_id, function_id, version, event_uuid, event_timestamp, distinct_id, clock, seed)
       select gen_random_uuid(), $1, $2, 1, gen_random_uuid(), now(), 'nobody', now(), 1 from generate_series(1, ${FLOOD})`,
      [anna.projectId, functions.flooded],
    );
    await eventually(async () => (await left('function_floods')) === 1);

    const apis = [oldApi];
    const acknowledged: { uuid: string; who: string }[] = [];
    let isOver = false;
    const client = async (number: number) => {
      for (let turn = 0; !isOver; turn += 1) {
        const batch = Array.from({ length: 5 }, (_, n) => ({
          uuid: uuidv7(),
          who: `w-${number}-${(turn * 5 + n) % 100}`,
        }));
        const events = batch.map(({ uuid, who }) => ({ uuid, event: 'paid', distinct_id: who }));
        // Whoever got no answer sends the same again, to whichever there is.
        for (let api = turn; !(await send(apis[api % apis.length] as ApiProgram, events)); api += 1)
          await pause(50);
        acknowledged.push(...batch);
        await pause(100);
      }
    };
    const clients = [client(0), client(1)];
    const progress = (more: number) => {
      const before = at('plain').length;
      return eventually(async () => at('plain').length > before + more);
    };
    await progress(100);

    // The newer ones come first, as the guide to upgrades has it, and migrate the database under the older ones.
    const newApi = await newest.ready(await newest.startApi(settings));
    apis.push(newApi);
    expect(await applied()).toBe(readMigrations().length);
    await startWorker(newest);
    await progress(100);
    const replay = (id: string, kind: string, body: object) =>
      ask<{ id: string } & Record<string, { id: string }>>(newApi, 'POST', `${id}/${kind}/`, {
        ...{ rate_per_second: null, ...body },
      });
    const until = (id: string, run: string, status: string) =>
      eventually(async () => {
        const shown = await ask<{ status: string }>(newApi, 'GET', `${id}/replays/${run}/`);
        return shown.status === status && shown;
      });
    const replayed = await replay(functions.past, 'replay', {
      after: '2020-01-01T00:00:00Z',
      before: '2100-01-01T00:00:00Z',
    });
    const broadcast = (
      await replay(functions.people, 'broadcast', {
        properties: [{ key: 'n', type: 'person', operator: 'is_set', value: 'is_set' }],
      })
    ).broadcast as { id: string };
    oldWorker.kill('SIGKILL');
    await oldWorker.exited;
    await progress(100);
    expect(await until(functions.past, replayed.id, 'completed')).toMatchObject({
      matched: EARLIER,
      queued: EARLIER,
    });
    expect(await until(functions.people, broadcast.id, 'completed')).toMatchObject({
      matched: PEOPLE,
      queued: PEOPLE,
    });

    // An older one that starts now says why it does not, and has touched nothing.
    oldWorker = older.start('worker/main.ts', settings);
    expect((await oldWorker.exited).code).not.toBe(0);
    expect(oldWorker.output()).toMatch(/The database is newer than this Sluice/);
    await progress(100);
    apis.splice(apis.indexOf(oldApi), 1);
    oldApi.kill('SIGTERM');
    await oldApi.exited;
    await progress(100);
    isOver = true;
    await Promise.all(clients);

    // What was kept as positions, by either version, comes when there is room again.
    expect(await left('function_positions')).toBeGreaterThan(0);
    await pool.query("delete from function_queue where distinct_id = 'nobody'");
    await ask(newApi, 'PATCH', `${functions.flooded}/`, { paused: false });
    await eventually(async () => (await left('function_batches')) + (await left('function_positions')) === 0);
    // However many there are: the test waits as long as some of them are delivered.
    for (let before = Number.POSITIVE_INFINITY; before > 0; ) {
      const now = await left('function_queue');
      if (now > 0 && now === before) throw new Error(`${now} invocations are not delivered`);
      before = now;
      if (now > 0) await pause(20_000);
    }

    const uuids = acknowledged.map(({ uuid }) => uuid).sort();
    const keys = (path: string) => new Set(at(path).map(({ key }) => key)).size;
    const ids = (path: string) => [...new Set(at(path).map(({ id }) => id))].sort();
    const people = [...new Set(acknowledged.map(({ who }) => who))].sort();
    expect(ids('plain')).toEqual(uuids);
    expect(keys('plain')).toBe(uuids.length);
    expect(ids('flooded')).toEqual(uuids);
    expect(keys('flooded')).toBe(uuids.length);
    expect(keys('ordered')).toBe(uuids.length);
    expect(overlapping).toEqual([]);
    expect(ids('masked')).toEqual(people);
    expect(keys('masked')).toBe(people.length);
    expect(ids('past')).toEqual(earlier.sort());
    expect(keys('past')).toBe(EARLIER);
    expect(keys('people')).toBe(PEOPLE);
    const { rows } = await pool.query(
      `select f.name, count(*)::int as all, count(distinct event_uuid)::int as events,
         count(*) filter (where i.status = 'succeeded')::int as succeeded
       from function_invocations i join functions f on f.id = i.function_id where f.name in ('plain', 'flooded', 'ordered') group by 1`,
    );
    const each = { all: uuids.length, events: uuids.length, succeeded: uuids.length };
    expect(rows.map(({ name, ...counts }) => counts)).toEqual([each, each, each]);
  });
});
