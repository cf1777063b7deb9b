import { rmSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from '@jest/globals';
import { changeQuota } from '../../flags/commands/quota.ts';
import { OPERATOR } from '../../tenancy/actor.ts';
import { EVERYBODY, storeFlag, where } from '../flags/support.ts';
import { createTenant, type Tenant } from '../support/api.ts';
import { makeDataDir } from '../support/data-dir.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually, PATIENCE } from '../support/eventually.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { type ApiProgram, programsForFile } from '../support/programs.ts';
import { allocateNamespace } from '../support/temporal.ts';

/** What becomes of what the API says to Postgres, or hears from it. */
type Harm = 'cut' | 'hang' | 'deaf listener' | undefined;

const programs = programsForFile();
const database = databaseForFile();
let proxy: Awaited<ReturnType<typeof startPostgresProxy>>;
let tenant: Tenant;
let harm: Harm;
let held = 0;
let well = Promise.withResolvers<void>();

function be(next: Harm): void {
  harm = next;
  well.resolve();
  well = Promise.withResolvers();
  held = 0;
}

beforeAll(async () => {
  proxy = await startPostgresProxy({
    behind: Number(new URL(database.url).port),
    watch() {
      if (harm === 'cut') return 'cut';
      if (harm !== 'hang') return undefined;
      held += 1;
      return well.promise;
    },
    hold: (_bytes, name) =>
      harm === 'deaf listener' && name === 'sluice-listener' ? well.promise : undefined,
  });
  tenant = await createTenant(database.pool, 'Anna');
  await storeFlag(database.pool, tenant.projectId, { key: 'everybody', filters: EVERYBODY });
  const email = { key: 'email', type: 'person', operator: 'icontains', value: '@acme' };
  await storeFlag(database.pool, tenant.projectId, { key: 'acme', filters: where(email) });
});
afterEach(() => be(undefined));
afterAll(async () => {
  be(undefined);
  await proxy?.close();
});

async function start(dataDir: string): Promise<ApiProgram> {
  const { address, namespace } = allocateNamespace();
  const url = new URL(database.url);
  url.host = `127.0.0.1:${proxy.port}`;
  return programs.startApi({
    DATABASE_URL: url.href,
    TEMPORAL_ADDRESS: address,
    TEMPORAL_NAMESPACE: namespace,
    SLUICE_DATA_DIR: dataDir,
  });
}

const post = (url: string, body: object) =>
  fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(PATIENCE),
  });

interface Told {
  status: number;
  flags?: Record<string, string>;
}

/** What the API tells about Ann. */
async function ask(api: ApiProgram, body: object = {}): Promise<Told> {
  const answer = await post(`${api.url}/flags?v=2`, {
    ...{ api_key: tenant.projectToken, distinct_id: 'ann' },
    ...body,
  });
  if (answer.status !== 200) {
    await answer.text();
    return { status: answer.status };
  }
  const { flags } = (await answer.json()) as { flags: Record<string, { reason: { code: string } }> };
  return {
    status: 200,
    flags: Object.fromEntries(Object.entries(flags).map(([key, flag]) => [key, flag.reason.code])),
  };
}

const capture = (api: ApiProgram) =>
  post(`${api.url}/i/v0/e/`, {
    ...{ api_key: tenant.projectToken, event: '$set', distinct_id: 'ann' },
    properties: { $set: { email: 'ann@acme.com' } },
  });
const statusOf = async (url: string) => {
  const answer = await fetch(url);
  await answer.text();
  return answer.status;
};
const readyForFlags = (api: ApiProgram) =>
  eventually(async () => (await statusOf(`${api.url}/_readyz/flags`).catch(() => 0)) === 200);

const RIGHT = { status: 200, flags: { everybody: 'condition_match', acme: 'condition_match' } };
const WITHOUT_PERSON = { status: 200, flags: { everybody: 'condition_match', acme: 'database_error' } };
const OWN = { person_properties: { email: 'ann@acme.com' } };

test('flags are told while Postgres is away, also by a process that starts meanwhile, and all is right when it is back', async () => {
  const dataDir = makeDataDir();
  let api = await programs.ready(await start(dataDir));
  expect((await capture(api)).status).toBe(200);
  expect(await ask(api)).toEqual(RIGHT);
  await database.pool.query(
    `insert into surveys (project_id, id, name, type, start_date)
     values ($1, gen_random_uuid(), 'Liking', 'popover', clock_timestamp())`,
    [tenant.projectId],
  );
  const surveys = async () => {
    const answer = await fetch(`${api.url}/api/surveys/?token=${tenant.projectToken}`);
    return ((await answer.json()) as { surveys: { name: string }[] }).surveys.map((one) => one.name);
  };
  await eventually(async () => (await surveys()).join() === 'Liking');
  expect(await statusOf(`${api.url}/array/${tenant.projectToken}/config.js`)).toBe(200);
  const answers = new Map<string, number>();
  let isOver = false;
  const clients = [OWN, OWN, {}, {}].map(async (body) => {
    while (!isOver) {
      const told = JSON.stringify(await ask(api, body));
      answers.set(told, (answers.get(told) ?? 0) + 1);
      await pause(1);
    }
  });
  const many = async (told: Told, more: number) => {
    const key = JSON.stringify(told);
    const before = answers.get(key) ?? 0;
    await eventually(async () => (answers.get(key) ?? 0) >= before + more);
  };
  await many(RIGHT, 50);
  be('cut');
  await many(WITHOUT_PERSON, 50);
  await many(RIGHT, 50);
  const refused = await capture(api);
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '2']);
  expect(await statusOf(`${api.url}/_readyz`)).toBe(503);
  expect(await statusOf(`${api.url}/_readyz/flags`)).toBe(200);
  isOver = true;
  await Promise.all(clients);
  // No other answer was ever given.
  expect([...answers.keys()].sort()).toEqual(
    [RIGHT, WITHOUT_PERSON].map((told) => JSON.stringify(told)).sort(),
  );
  api.kill('SIGKILL');
  await api.exited;

  api = await start(dataDir);
  await readyForFlags(api);
  for (let times = 0; times < 20; times += 1) {
    expect(await ask(api, OWN)).toEqual(RIGHT);
    expect(await ask(api)).toEqual(WITHOUT_PERSON);
  }
  expect((await ask(api, { api_key: 'phc_nobody' })).status).toBe(503);
  expect((await capture(api)).status).toBe(503);
  expect((await api.readiness())?.status).toBe(503);
  const path = `${api.url}/array/${tenant.projectToken}/config`;
  expect(await (await fetch(path)).json()).toMatchObject({ hasFeatureFlags: true, surveys: true });
  expect(await surveys()).toEqual(['Liking']);
  expect(await statusOf(`${path}.js`)).toBe(200);

  be(undefined);
  await programs.ready(api);
  await eventually(async () => JSON.stringify(await ask(api)) === JSON.stringify(RIGHT));
  await eventually(async () => (await capture(api)).status === 200);
  expect((await ask(api, { api_key: 'phc_nobody' })).status).toBe(401);
  api.kill('SIGTERM');
  expect(await api.exited).toEqual({ code: 0, signal: null });
  rmSync(dataDir, { recursive: true, force: true });
});

test('what changes while a process cannot see it takes effect when Postgres is back', async () => {
  const dataDir = makeDataDir();
  let api = await programs.ready(await start(dataDir));
  const other = await createTenant(database.pool, 'Otto');
  await storeFlag(database.pool, other.projectId, { key: 'first', filters: EVERYBODY });
  const asOther = (api_key = other.projectToken) => ask(api, { api_key });
  expect(await asOther()).toEqual({ status: 200, flags: { first: 'condition_match' } });
  // What is on disk was written before the process is gone.
  api.kill('SIGTERM');
  await api.exited;
  be('cut');
  api = await start(dataDir);
  await readyForFlags(api);
  const rotated = `phc_${'r'.repeat(40)}`;
  await database.pool.query('update projects set api_token = $2 where id = $1', [other.projectId, rotated]);
  await storeFlag(database.pool, other.projectId, { key: 'second', filters: EVERYBODY });
  expect(await asOther()).toEqual({ status: 200, flags: { first: 'condition_match' } });
  be(undefined);
  await eventually(async () => (await asOther()).status === 401);
  await eventually(async () => Object.keys((await asOther(rotated)).flags ?? {}).length === 2);
  // The copy of the old key is gone, too.
  api.kill('SIGTERM');
  await api.exited;
  be('cut');
  api = await start(dataDir);
  await readyForFlags(api);
  expect((await asOther()).status).toBe(503);
  expect((await asOther(rotated)).flags).toEqual({ first: 'condition_match', second: 'condition_match' });
  api.kill('SIGKILL');
  await api.exited;
  rmSync(dataDir, { recursive: true, force: true });
});

test('while Postgres does not answer, requests do not wait for it', async () => {
  const dataDir = makeDataDir();
  const api = await programs.ready(await start(dataDir));
  expect((await capture(api)).status).toBe(200);
  expect(await ask(api)).toEqual(RIGHT);
  be('hang');
  await eventually(async () => JSON.stringify(await ask(api)) === JSON.stringify(WITHOUT_PERSON));
  held = 0;
  for (let times = 0; times < 500; times += 1) {
    expect((await ask(api)).flags).toEqual(WITHOUT_PERSON.flags);
  }
  // A breaker lets one ask in a second, and the others do not ask at all.
  expect(held).toBeLessThan(100);
  expect(await statusOf(`${api.url}/_readyz/flags`)).toBe(200);
  be(undefined);
  await eventually(async () => JSON.stringify(await ask(api)) === JSON.stringify(RIGHT));
  api.kill('SIGKILL');
  await api.exited;
  rmSync(dataDir, { recursive: true, force: true });
});

/** Asks until nothing is left, and counts the answers that had flags. */
async function useUp(api: ApiProgram, api_key: string, refusals = 3): Promise<number> {
  let told = 0;
  for (let refused = 0; refused < refusals; ) {
    const answers = await Promise.all(
      Array.from({ length: 5 }, async () => {
        const answer = await post(`${api.url}/flags?v=2`, { api_key, distinct_id: 'ann' });
        return ((await answer.json()) as { quotaLimited?: string[] }).quotaLimited === undefined;
      }),
    );
    told += answers.filter(Boolean).length;
    refused = answers.includes(false) ? refused + 1 : 0;
  }
  return told;
}

test('several processes give out a quota exactly; what one that is killed did not claim comes back', async () => {
  const tenantOf = async (requests: number) => {
    const one = await createTenant(database.pool, 'Quota');
    await storeFlag(database.pool, one.projectId, { key: 'first', filters: EVERYBODY });
    await changeQuota(database.pool, OPERATOR, one.organizationId, requests);
    return one;
  };
  const dataDir = makeDataDir();
  const all = await Promise.all([1, 2, 3].map(async () => programs.ready(await start(dataDir))));
  const exact = await tenantOf(701);
  let told = 0;
  const askAll = async () => {
    const counts = await Promise.all(all.map((api) => useUp(api, exact.projectToken)));
    for (const count of counts) told += count;
    return told;
  };
  // What some hold and do not need comes back within seconds.
  await eventually(async () => (await askAll()) >= 701);
  await askAll();
  expect(told).toBe(701);

  const killed = await tenantOf(800);
  const [victim, second, third] = all as [ApiProgram, ApiProgram, ApiProgram];
  let ofVictim = 0;
  const dying = (async () => {
    for (;;) {
      const answer = await post(`${victim.url}/flags?v=2`, {
        api_key: killed.projectToken,
        distinct_id: 'ann',
      });
      await answer.text();
      ofVictim += 1;
      if (ofVictim === 50) victim.kill('SIGKILL');
    }
  })().catch(() => undefined);
  await victim.exited;
  await dying;
  const { rows } = await database.pool.query(
    'select amount::int, claimed::int from flag_quota_leases where organization_id = $1',
    [killed.organizationId],
  );
  const [{ amount, claimed }] = rows as [{ amount: number; claimed: number }];
  expect(claimed).toBeGreaterThanOrEqual(ofVictim);
  expect(amount).toBeGreaterThan(claimed);
  let ofOthers = 0;
  await eventually(async () => {
    for (const api of [second, third]) ofOthers += await useUp(api, killed.projectToken, 1);
    return ofOthers >= 800 - claimed;
  });
  expect(ofOthers).toBe(800 - claimed);
  for (const api of all) api.kill('SIGKILL');
  await Promise.all(all.map((api) => api.exited));
  rmSync(dataDir, { recursive: true, force: true });
});

test('when notifications are lost and nobody tells, keys and flags are right again soon', async () => {
  const dataDir = makeDataDir();
  const api = await programs.ready(await start(dataDir));
  const other = await createTenant(database.pool, 'Olga');
  await storeFlag(database.pool, other.projectId, { key: 'first', filters: EVERYBODY });
  const asOther = (api_key = other.projectToken) => ask(api, { api_key });
  expect(await asOther()).toEqual({ status: 200, flags: { first: 'condition_match' } });
  be('deaf listener');
  const rotated = `phc_${'s'.repeat(40)}`;
  await database.pool.query('update projects set api_token = $2 where id = $1', [other.projectId, rotated]);
  await storeFlag(database.pool, other.projectId, { key: 'second', filters: EVERYBODY });
  await eventually(async () => (await asOther()).status === 401);
  await eventually(async () => Object.keys((await asOther(rotated)).flags ?? {}).length === 2);
  api.kill('SIGKILL');
  await api.exited;
  rmSync(dataDir, { recursive: true, force: true });
});
