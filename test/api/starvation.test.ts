// What one tenant can make expensive, and what the others notice of it: nothing.
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import type { ApiDependencies, App } from '../../api/dependencies.ts';
import { loadConfig } from '../../config.ts';
import { createPool, type Pool, type PoolLimits, transaction } from '../../db/pool.ts';
import { Turns } from '../../db/turns.ts';
import { createCompiler } from '../../models/index.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually, PATIENCE } from '../support/eventually.ts';
import { insertEvents } from '../support/rows.ts';

// Hooks run in the order of their definition: this one before the database goes.
afterAll(async () => {
  for (const app of apps) await app.close();
  for (const pool of pools) await pool.end();
  await compiler.close();
});
const api = apiForFile();
/** As in the program: one project never has all threads. */
const compiler = createCompiler({ timeoutMs: PATIENCE });
const apps: App[] = [];
const pools: Pool[] = [];
let anna: Tenant;
let ben: Tenant;
let serial = 0;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  ben = await api.createTenant('Ben');
});

function poolOf(size: number, limits?: PoolLimits): Pool {
  serial += 1;
  const url = api.config.DATABASE_URL as string;
  const pool = createPool({ url, size, name: `starved-${serial}`, limits });
  pools.push(pool);
  return pool;
}

/** The API with one connection for each kind of work, as if everything were almost used up. */
async function narrowApi(changes: Partial<ApiDependencies> = {}, limits?: PoolLimits): Promise<App> {
  const app = await api.rebuild({
    pool: poolOf(1, limits),
    readingPool: poolOf(2, { ...limits, clientCheck: 100 }),
    lanePool: poolOf(1),
    compiling: new Turns({ atOnce: 2, perAsker: 1 }),
    compiler,
    ...changes,
  });
  apps.push(app);
  return app;
}

async function ask(
  app: App,
  tenant: Tenant,
  method: 'GET' | 'POST' | 'PATCH',
  url: string,
  payload?: object,
) {
  const answer = await app.inject({
    method,
    url,
    headers: { authorization: `Bearer ${tenant.key}` },
    ...(payload === undefined ? {} : { payload }),
  });
  return { status: answer.statusCode, body: answer.json(), headers: answer.headers };
}
const exportsOf = (tenant: Tenant) => `/api/projects/${tenant.projectId}/batch_exports/`;
const NOOP = { interval: 'hour', destination: { type: 'NoOp', config: {} } };

async function createExport(app: App, tenant: Tenant, name: string): Promise<string> {
  const made = await ask(app, tenant, 'POST', exportsOf(tenant), { ...NOOP, name });
  expect([made.status, made.body.detail]).toEqual([201, undefined]);
  return `${exportsOf(tenant)}${made.body.id}/`;
}

/** What somebody else does meanwhile. */
async function others(app: App, tenant: Tenant): Promise<number[]> {
  const event = { api_key: tenant.projectToken, event: 'e', distinct_id: 'u' };
  return Promise.all([
    ask(app, tenant, 'GET', exportsOf(tenant)).then(({ status }) => status),
    ask(app, tenant, 'GET', '/api/users/@me/').then(({ status }) => status),
    ask(app, tenant, 'GET', `/api/projects/${tenant.projectId}/persons/`).then(({ status }) => status),
    ask(app, tenant, 'POST', `${exportsOf(tenant)}preview/`, {
      ...{ ...NOOP, name: 'p' },
      filters: [{ key: "event = 'e'", type: 'hogql' }],
    }).then(({ status }) => status),
    app.inject({ method: 'POST', url: '/e/', payload: event }).then((answer) => answer.statusCode),
  ]);
}

/** A filter that takes its time to read, and that nobody has read before. */
function slowFilter() {
  serial += 1;
  const terms = Array.from({ length: 20 }, (_, n) => `ifNull(properties.a${serial}_${n}, 1) = 2`);
  return { key: terms.join(' or '), type: 'hogql' };
}

describe('ten changes of an export with many filters', () => {
  test('leave every connection to others, which get what they ask for', async () => {
    const app = await narrowApi();
    const url = await createExport(app, anna, 'Heavy');
    let isOver = false;
    const attack = Promise.all(
      Array.from({ length: 10 }, () =>
        ask(app, anna, 'PATCH', url, { filters: Array.from({ length: 40 }, slowFilter) }),
      ),
    ).finally(() => {
      isOver = true;
    });
    const seen = new Set<number>();
    while (!isOver) for (const status of await others(app, ben)) seen.add(status);
    expect([...seen]).toEqual([200]);
    for (const { status, body, headers } of await attack) {
      expect([200, 429]).toContain(status);
      if (status === 429)
        expect([body.code, Number(headers['retry-after'])]).toEqual(['throttled', expect.any(Number)]);
    }
  });

  test('are refused one by one when their texts take too long, and stop', async () => {
    const begun: (AbortSignal | undefined)[] = [];
    const never = (_options: unknown, signal?: AbortSignal) =>
      new Promise<never>((_resolve, reject) => {
        begun.push(signal);
        signal?.addEventListener('abort', () => reject(signal.reason));
      });
    const url = await createExport(await narrowApi(), anna, 'Endless');
    const app = await narrowApi({ compiler: { ...api.compiler, query: never } });
    await app.listen({ host: '127.0.0.1', port: 0 });
    const port = (app.server.address() as net.AddressInfo).port;
    const gone = new AbortController();
    const asked = fetch(`http://127.0.0.1:${port}${url}`, {
      method: 'PATCH',
      headers: { authorization: `Bearer ${anna.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ filters: [slowFilter()] }),
      signal: gone.signal,
    });
    await eventually(async () => begun.length === 1);
    expect(begun[0]?.aborted).toBe(false);
    gone.abort();
    await expect(asked).rejects.toThrow();
    // The client is gone, so nothing more is read for it.
    await eventually(async () => begun[0]?.aborted === true);
    expect((await ask(app, ben, 'GET', exportsOf(ben))).status).toBe(200);
  });
});

describe('a change of an export', () => {
  test('takes one connection only, also when it cuts the intervals anew or goes on after a pause', async () => {
    const app = await narrowApi();
    const url = await createExport(app, anna, 'Recut');
    expect((await ask(app, anna, 'PATCH', url, { interval: 'day', timezone: 'Europe/Berlin' })).status).toBe(
      200,
    );
    expect((await ask(app, anna, 'POST', `${url}pause/`)).status).toBe(200);
    expect((await ask(app, anna, 'POST', `${url}unpause/`, { backfill: true })).status).toBe(200);
  });

  test('is computed again when somebody else changes the export meanwhile', async () => {
    const compiling = new Turns({ atOnce: 1, patience: 60_000 });
    const app = await narrowApi({ compiling });
    const url = await createExport(app, anna, 'Before');
    const leave = await compiling.enter(anna.projectId);
    const change = ask(app, anna, 'PATCH', url, { timezone: 'Asia/Tokyo' });
    // It has read the export, and waits for its turn at the compiler.
    await eventually(async () => compiling.waiting === 1);
    const id = url.split('/').at(-2);
    await api.pool.query(`update batch_exports set name = 'Meanwhile' where id = $1`, [id]);
    leave();
    expect((await change).body).toMatchObject({ name: 'Meanwhile', timezone: 'Asia/Tokyo' });
  });

  test('gives up with 409 when somebody else always changes it first', async () => {
    const compiler: ApiDependencies['compiler'] = {
      ...api.compiler,
      async query(options, signal) {
        await api.pool.query(`update batch_exports set name = name || '!' where name like 'Contested%'`);
        return api.compiler.query(options, signal);
      },
    };
    const url = await createExport(await narrowApi(), anna, 'Contested');
    const app = await narrowApi({ compiler });
    const { status, body, headers } = await ask(app, anna, 'PATCH', url, {
      name: 'Mine',
      filters: [{ key: "event = 'e'", type: 'hogql' }],
    });
    expect([status, body.code, headers['retry-after']]).toEqual([409, 'conflict', '1']);
    expect((await ask(app, anna, 'GET', url)).body.name).toMatch(/^Contested!+$/);
  });

  test('does not wait for ever for a row that somebody else holds, and then changes nothing', async () => {
    const app = await narrowApi({}, { lock: 100, statement: 5_000 });
    const url = await createExport(app, anna, 'Held');
    const id = url.split('/').at(-2);
    await transaction(api.pool, async (holder) => {
      await holder.query('select from batch_exports where id = $1 for update', [id]);
      const { status, body, headers } = await ask(app, anna, 'PATCH', url, { name: 'New' });
      expect([status, body.detail, headers['retry-after']]).toEqual([
        503,
        'Somebody else is changing the same thing at the moment. Try again.',
        '2',
      ]);
    });
    expect((await ask(app, anna, 'GET', url)).body.name).toBe('Held');
  });
});

describe('a query', () => {
  test('ends in Postgres when its client is gone', async () => {
    const readingPool = poolOf(2, { clientCheck: 100 });
    const app = await narrowApi({ readingPool });
    await insertEvents(api.pool, [
      { project_id: anna.projectId, event: 'e', distinct_id: 'u', timestamp: new Date().toISOString() },
    ]);
    await app.listen({ host: '127.0.0.1', port: 0 });
    const port = (app.server.address() as net.AddressInfo).port;
    const connections = async () => {
      const { rows } = await api.pool.query(
        `select wait_event_type from pg_stat_activity where application_name = $1`,
        [readingPool.options.application_name],
      );
      return rows.map((row) => row.wait_event_type);
    };
    await transaction(api.pool, async (holder) => {
      await holder.query('lock table events in access exclusive mode');
      const gone = new AbortController();
      const asked = fetch(`http://127.0.0.1:${port}/api/projects/${anna.projectId}/events/`, {
        headers: { authorization: `Bearer ${anna.key}` },
        signal: gone.signal,
      });
      await eventually(async () => (await connections()).includes('Lock'));
      gone.abort();
      await expect(asked).rejects.toThrow();
      // A query that took too long would leave its connection to the pool.
      await eventually(async () => readingPool.totalCount === 0 && (await connections()).length === 0);
    });
    expect((await ask(app, anna, 'GET', `/api/projects/${anna.projectId}/events/`)).status).toBe(200);
  });
});

describe('a user', () => {
  test('has a few requests at work at once, so many of them keep nobody else waiting', async () => {
    const config = { ...api.config, SLUICE_REQUESTS_AT_ONCE: 2 };
    const pool = poolOf(3);
    const app = await narrowApi({ config, pool });
    // A key is known from its first request on.
    for (const tenant of [anna, ben])
      expect((await ask(app, tenant, 'GET', '/api/users/@me/')).status).toBe(200);
    const many = await transaction(api.pool, async (holder) => {
      await holder.query('lock table batch_exports in access exclusive mode');
      const many = Array.from({ length: 12 }, () => ask(app, anna, 'GET', exportsOf(anna)));
      await eventually(async () => pool.totalCount - pool.idleCount >= 2);
      for (let n = 0; n < 5; n += 1) expect((await ask(app, ben, 'GET', '/api/users/@me/')).status).toBe(200);
      expect(pool.totalCount - pool.idleCount).toBe(2);
      return { answers: Promise.all(many) };
    });
    expect((await many.answers).map(({ status }) => status)).toEqual(Array(12).fill(200));
  });

  test('has a limited number of exports in each project', async () => {
    const config = { ...api.config, SLUICE_EXPORTS_PER_PROJECT: 2 };
    const app = await narrowApi({ config });
    const carl = await api.createTenant('Carl');
    const url = await createExport(app, carl, 'One');
    await createExport(app, carl, 'Two');
    const third = { ...NOOP, name: 'Three' };
    const refused = await ask(app, carl, 'POST', exportsOf(carl), third);
    expect([refused.status, refused.body.detail]).toEqual([
      400,
      'This project already has 2 batch exports, the most that it may have. Delete one before creating another.',
    ]);
    await createExport(app, ben, 'Of somebody else');
    await app.inject({ method: 'DELETE', url, headers: { authorization: `Bearer ${carl.key}` } });
    await createExport(app, carl, 'Three');
    // Those that ran once have a bound of their own.
    await api.pool.query(
      `insert into batch_exports (project_id, id, name, model, destination_type, config, interval, hogql_query)
       select $1, gen_random_uuid(), 'Done', 'hogql', 'NoOp', '{}', 'once', 'select 1' from generate_series(1, 20)`,
      [carl.projectId],
    );
    const once = await ask(app, carl, 'POST', exportsOf(carl), third);
    expect(once.body.detail).toMatch(/already has 2 batch exports, the most/);
    const [, last] = (await ask(app, carl, 'GET', `${exportsOf(carl)}?limit=2`)).body.results;
    expect(last.interval).toBe('once');
    await api.pool.query(
      `update batch_exports set deleted_at = now() where project_id = $1 and interval <> 'once'`,
      [carl.projectId],
    );
    const many = await ask(app, carl, 'POST', exportsOf(carl), third);
    expect(many.body.detail).toMatch(/already has 20 batch exports that ran once, the most/);
  });
});

describe('a client', () => {
  const listen = async (env: Record<string, string>) => {
    const app = await narrowApi({ config: { ...api.config, ...pick(loadConfig(env), Object.keys(env)) } });
    await app.listen({ host: '127.0.0.1', port: 0 });
    return { app, port: (app.server.address() as net.AddressInfo).port };
  };
  const pick = (config: object, names: string[]) =>
    Object.fromEntries(Object.entries(config).filter(([name]) => names.includes(name)));

  test('with very many connections loses the oldest idle ones, and its next request gets through', async () => {
    const { port } = await listen({ SLUICE_CONNECTIONS_PER_ADDRESS: '5' });
    const closed: number[] = [];
    const sockets: net.Socket[] = [];
    for (let n = 0; n < 8; n += 1) {
      const socket = net.connect(port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.once('close', () => closed.push(n));
      sockets.push(socket);
      await new Promise((resolve) => socket.once('connect', resolve));
      // The beginning of a request that never ends.
      socket.write('GET /_livez HTTP/1.1\r\nHost: x\r\nX-Slow: ');
    }
    await eventually(async () => closed.length === 3);
    expect(closed).toEqual([0, 1, 2]);
    expect((await fetch(`http://127.0.0.1:${port}/_livez`)).status).toBe(200);
    await eventually(async () => closed.length === 4);
    for (const socket of sockets) socket.destroy();
  });

  test('without a key is refused before its large body is read', async () => {
    const { port } = await listen({});
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = net.connect(port, '127.0.0.1');
      socket.once('error', reject);
      socket.once('data', (chunk) => {
        resolve(String(chunk));
        socket.destroy();
      });
      // Not a byte of the body follows.
      socket.write(
        'POST /api/organizations/ HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n',
      );
    });
    expect(answer.split('\r\n')[0]).toBe('HTTP/1.1 401 Unauthorized');
  });
});
