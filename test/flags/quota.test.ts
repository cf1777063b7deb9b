import { afterAll, expect, test } from '@jest/globals';
import type { App } from '../../api/dependencies.ts';
import { createPool } from '../../db/pool.ts';
import { changeQuota } from '../../flags/commands/quota.ts';
import { createQuotas, type Quotas } from '../../flags/quota/quotas.ts';
import { findQuota, giveBack, lease, setQuota } from '../../flags/rows/quotas.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { OPERATOR } from '../../tenancy/actor.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually, PATIENCE } from '../support/eventually.ts';
import { rounds } from '../support/rounds.ts';
import { EVERYBODY, storeFlag } from './support.ts';

const api = apiForFile();
const apps: App[] = [];
afterAll(async () => {
  await Promise.all(apps.map((one) => one.close()));
});
const logger = createLogger({ name: 'test', level: 'silent' });

/** Some processes' quotas, over one database. */
function processes(count: number, changes: Partial<Parameters<typeof createQuotas>[0]> = {}): Quotas[] {
  return Array.from({ length: count }, () =>
    createQuotas({
      logger,
      usualBound: 0,
      lease: (asked) => lease(api.pool, asked),
      giveBack: (given) => giveBack(api.pool, given),
      ...changes,
    }),
  );
}

async function tenantWith(requests: number | null): Promise<Tenant> {
  const tenant = await api.createTenant('Quota');
  await changeQuota(api.pool, OPERATOR, tenant.organizationId, requests);
  return tenant;
}

test.each([1, 9, 100, 1_000, 5_003])('many processes give out a quota of %i exactly', async (bound) => {
  const { organizationId } = await tenantWith(bound);
  const all = processes(4, { every: 20 });
  let given = 0;
  // Each takes at another pace, and has pauses in which what it does not use comes back to the others.
  await Promise.all(
    all.map(async (quotas, index) => {
      for (let refusals = 0; refusals < 3; ) {
        const taken = await Promise.all(
          Array.from({ length: 1 + index * 20 }, () => quotas.take(organizationId, bound, 1)),
        );
        const yes = taken.filter(Boolean).length;
        given += yes;
        expect(given).toBeLessThanOrEqual(bound);
        refusals = yes < taken.length ? refusals + 1 : 0;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }),
  );
  const [last] = all as [Quotas];
  // Nothing is lost: who stops gives back what it does not need.
  await eventually(async () => {
    if (await last.take(organizationId, bound, 1)) given += 1;
    return given === bound;
  });
  expect(await last.take(organizationId, bound, 1)).toBe(false);
  await Promise.all(all.map((one) => one.close()));
  expect(await findQuota(api.pool, organizationId)).toMatchObject({ granted: bound, held: 0 });
});

test('what a dead process did not claim comes back after its lease ends', async () => {
  const { organizationId } = await tenantWith(1_000);
  const id = 'a0000000-0000-4000-8000-000000000001';
  const asked = { organizationId, used: 0, beyond: 0, seconds: 3_600, usualBound: 0 };
  expect(await lease(api.pool, { ...asked, id, wanted: 100, spare: 800 })).toMatchObject({ claimed: 100 });
  const [other] = processes(1) as [Quotas];
  let given = 0;
  while (await other.take(organizationId, 1_000, 1)) given += 1;
  expect(given).toBe(100);
  await api.pool.query('update flag_quota_leases set expires_at = now() where id = $1', [id]);
  await eventually(async () => {
    while (await other.take(organizationId, 1_000, 1)) given += 1;
    return given === 900;
  });
  await other.close();
  expect(await findQuota(api.pool, organizationId)).toMatchObject({ granted: 1_000, held: 0 });
});

test('a process that slept through the end of its lease uses nothing of it', async () => {
  const { organizationId } = await tenantWith(100);
  let time = 0;
  const [sleeper, other] = [...processes(1, { now: () => time }), ...processes(1)] as [Quotas, Quotas];
  expect(await sleeper.take(organizationId, 100, 1)).toBe(true);
  time = 15_000;
  await api.pool.query('update flag_quota_leases set expires_at = now() where organization_id = $1', [
    organizationId,
  ]);
  let given = 1;
  await eventually(async () => {
    while (await other.take(organizationId, 100, 1)) given += 1;
    return given > 80;
  });
  expect(await sleeper.take(organizationId, 100, 1)).toBe(false);
  await Promise.all([sleeper.close(), other.close()]);
});

test('no request writes', async () => {
  const { organizationId } = await tenantWith(1_000_000);
  let questions = 0;
  const [quotas] = processes(1, {
    lease: (asked) => {
      questions += 1;
      return lease(api.pool, asked);
    },
  }) as [Quotas];
  const many = rounds(20_000, 200_000);
  for (let number = 0; number < many; number += 1) {
    expect(await quotas.take(organizationId, null, 1)).toBe(true);
    expect(await quotas.take(organizationId, 1_000_000, 1)).toBe(true);
  }
  // The leases grow with what is used.
  expect(questions).toBeLessThan(many / 100);
  await quotas.close();
});

test('a month begins anew', async () => {
  const { organizationId } = await tenantWith(30);
  const [quotas] = processes(1) as [Quotas];
  const takeAll = async () => {
    let given = 0;
    while (await quotas.take(organizationId, 30, 1)) given += 1;
    return given;
  };
  expect(await takeAll()).toBe(30);
  for (const table of ['flag_quotas', 'flag_quota_leases']) {
    await api.pool.query(
      `update ${table} set period = (period - interval '1 month')::date where organization_id = $1`,
      [organizationId],
    );
  }
  let given = 0;
  await eventually(async () => {
    given += await takeAll();
    return given > 0;
  });
  expect(given).toBe(30);
  await quotas.close();
});

test('while the database is away, requests go on and count later, unless the quota was used up', async () => {
  const [some, none] = [await tenantWith(100), await tenantWith(1)];
  let isAway = false;
  const [quotas] = processes(1, {
    every: 500,
    patience: PATIENCE,
    lease: async (asked) => {
      if (isAway) throw new Error('away');
      return lease(api.pool, asked);
    },
  }) as [Quotas];
  expect(await quotas.take(some.organizationId, 100, 1)).toBe(true);
  expect(await quotas.take(none.organizationId, 1, 1)).toBe(true);
  expect(await quotas.take(none.organizationId, 1, 1)).toBe(false);
  isAway = true;
  for (let number = 0; number < 50; number += 1) {
    expect(await quotas.take(some.organizationId, 100, 1)).toBe(true);
    expect(await quotas.take(none.organizationId, 1, 1)).toBe(false);
  }
  isAway = false;
  await eventually(async () => {
    const { granted = 0, held = 0 } = (await findQuota(api.pool, some.organizationId)) ?? {};
    return granted - held >= 51;
  });
  await quotas.close();
  expect(await findQuota(api.pool, some.organizationId)).toMatchObject({ granted: 51, held: 0 });
});

const flagsOf = (tenant: Tenant, url = '/flags?v=2', body: object = {}) =>
  api.request(null, 'POST', url, { api_key: tenant.projectToken, distinct_id: 'ann', ...body });

test('what is over the quota gets no flags, and clients are told why', async () => {
  const tenant = await tenantWith(23);
  await storeFlag(api.pool, tenant.projectId, { key: 'on', filters: EVERYBODY });
  await storeFlag(api.pool, tenant.projectId, { key: 'survey-targeting-1', filters: EVERYBODY });
  // Neither of these counts.
  expect((await flagsOf(tenant, '/flags?v=2', { disable_flags: true })).json()).toMatchObject({ flags: {} });
  const survey = await flagsOf(tenant, '/flags?v=2', { flag_keys: ['survey-targeting-1'] });
  expect(Object.keys(survey.json().flags)).toEqual(['survey-targeting-1']);
  const definitions = `/flags/definitions?token=${tenant.projectToken}`;
  expect((await api.request(tenant, 'GET', definitions)).statusCode).toBe(200);
  expect((await api.request(tenant, 'GET', definitions)).statusCode).toBe(200);
  const over = await api.request(tenant, 'GET', definitions);
  expect([over.statusCode, over.json()]).toEqual([
    402,
    {
      ...{ type: 'quota_limited', code: 'payment_required', attr: null },
      detail: 'You have exceeded your feature flag request quota',
    },
  ]);
  for (let number = 0; number < 3; number += 1) {
    const answer = (await flagsOf(tenant)).json();
    expect([Object.keys(answer.flags).length, answer.quotaLimited]).toEqual([2, undefined]);
  }
  const answers = await Promise.all(
    ['/flags?v=2', '/flags?v=1', '/decide?v=1', '/decide?v=2', '/decide?v=3', '/flags'].map(async (url) => {
      const answer = await flagsOf(tenant, url);
      const { flags, featureFlags, featureFlagPayloads, quotaLimited, errorsWhileComputingFlags } =
        answer.json();
      return [
        answer.statusCode,
        quotaLimited,
        flags ?? featureFlags,
        featureFlagPayloads,
        errorsWhileComputingFlags,
      ];
    }),
  );
  const limited = ['feature_flags'];
  expect(answers).toEqual([
    [200, limited, {}, undefined, false],
    [200, limited, {}, {}, false],
    [200, limited, [], undefined, undefined],
    [200, limited, {}, undefined, undefined],
    [200, limited, {}, {}, false],
    [200, limited, {}, undefined, false],
  ]);
  const openFeature = await api.app.inject({
    method: 'POST',
    url: '/ofrep/v1/evaluate/flags/on',
    headers: { authorization: `Bearer ${tenant.projectToken}`, 'content-type': 'application/json' },
    payload: { context: { targetingKey: 'ann' } },
  });
  expect([openFeature.statusCode, openFeature.headers['retry-after']]).toEqual([429, '3600']);
  const usage = await api.request(tenant, 'GET', `/api/projects/${tenant.projectId}/feature_flags/usage/`);
  const today = new Date().toISOString().slice(0, 10);
  const counted = { day: today, requests: 3, definitions: 2, limited: 8 };
  expect(usage.json()).toEqual({ results: [counted] });
  const ofAll = `/api/organizations/${tenant.organizationId}/feature_flag_usage/`;
  expect((await api.request(tenant, 'GET', ofAll)).json()).toEqual({
    quota: { month: `${today.slice(0, 8)}01`, requests_per_month: 23, used: 23 },
    results: [{ project_id: tenant.projectId, ...counted }],
  });
  const stranger = await api.createTenant('Stranger');
  expect((await api.request(stranger, 'GET', ofAll)).statusCode).toBe(404);
  // More of it takes effect at once.
  await setQuota(api.pool, tenant.organizationId, 0);
  await eventually(async () => (await flagsOf(tenant)).json().quotaLimited === undefined);
  expect((await api.request(tenant, 'GET', ofAll)).json().quota.requests_per_month).toBeNull();
});

test('the setting is the quota of organizations that have none of their own', async () => {
  const tenant = await api.createTenant('Usual');
  await storeFlag(api.pool, tenant.projectId, { key: 'on', filters: EVERYBODY });
  const app = await api.rebuild({ config: { ...api.config, SLUICE_FLAG_REQUESTS_PER_MONTH: 2 } });
  apps.push(app);
  const told = async () => {
    const payload = { api_key: tenant.projectToken, distinct_id: 'ann' };
    return (await app.inject({ method: 'POST', url: '/flags?v=2', payload })).json().quotaLimited;
  };
  expect([await told(), await told(), await told()]).toEqual([undefined, undefined, ['feature_flags']]);
  await setQuota(api.pool, tenant.organizationId, 0);
  await eventually(async () => (await told()) === undefined);
});

test('flags are counted by what they were told to be, in few series', async () => {
  const tenant = await api.createTenant('Metrics');
  const variants = [{ key: 'blue', rollout_percentage: 100 }];
  const id = await storeFlag(api.pool, tenant.projectId, { key: 'on', filters: EVERYBODY });
  await storeFlag(api.pool, tenant.projectId, { key: 'off', filters: { groups: [] } });
  const colors = { ...EVERYBODY, multivariate: { variants } };
  await storeFlag(api.pool, tenant.projectId, { key: 'color', filters: colors });
  for (let number = 0; number < 5; number += 1) await flagsOf(tenant);
  const series = async () => {
    const text = await api.registry.metrics();
    return text
      .split('\n')
      .filter((line) => line.includes(`project="${tenant.projectId}"`))
      .map((line) => /flag="(.*?)",value="(.*?)".* (\d+)$/.exec(line)?.slice(1).join(' '))
      .sort();
  };
  expect(await series()).toEqual(['color blue 5', 'off false 5', 'on true 5']);
  await flagsOf(tenant);
  // What was told of an older version still counts.
  await api.pool.query('update feature_flags set active = false, version = 2 where id = $1', [id]);
  let told = 6;
  await eventually(async () => {
    const isOn = 'on' in (await flagsOf(tenant)).json().flags;
    told += isOn ? 1 : 0;
    return !isOn;
  });
  expect(await series()).toContain(`on true ${told}`);
});

test('requests that wait for a lease ask together', async () => {
  const { organizationId } = await tenantWith(500);
  const pool = createPool({ url: api.config.DATABASE_URL as string, name: 'quota', size: 1 });
  // They wait for as long as a busy machine takes.
  const [quotas] = processes(1, { lease: (asked) => lease(pool, asked), patience: 60_000 }) as [Quotas];
  const taken = await Promise.all(Array.from({ length: 700 }, () => quotas.take(organizationId, 500, 1)));
  expect(taken.filter(Boolean).length).toBe(500);
  await quotas.close();
  await pool.end();
});
