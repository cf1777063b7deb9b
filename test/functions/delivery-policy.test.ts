import { beforeAll, describe, expect, test } from '@jest/globals';
import { AHEAD, allowanceOf, nextClaim } from '../../functions/rules/pace.ts';
import { isTemporary, nextAttempt } from '../../functions/rules/retries.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
});
const path = (id = '') => `/api/projects/${anna.projectId}/hog_functions/${id}`;
const create = (fields: object) => api.request(anna, 'POST', path(), { hog: 'return 1', ...fields });
const POLICY = {
  ...{ max_concurrency: 5, rate_per_second: 0.5, ordering: 'distinct_id' },
  retry: { max_attempts: 4, max_age_seconds: 3_600, statuses: [404, '5xx'] },
};

describe('the policy of a function', () => {
  test('is none by default, is stored, changed as a whole and removed, and makes no version', async () => {
    const made = (await create({})).json();
    expect(made).toMatchObject({ delivery: null, paused: false, version: 1 });
    const change = async (method: 'PATCH' | 'PUT', body: object) =>
      (await api.request(anna, method, path(`${made.id}/`), body)).json();
    expect(await change('PATCH', { delivery: POLICY, paused: true })).toMatchObject({
      ...{ delivery: POLICY, paused: true, version: 1 },
    });
    expect((await api.request(anna, 'GET', path(`${made.id}/`))).json()).toMatchObject({ delivery: POLICY });
    expect(await change('PUT', { hog: 'return 1' })).toMatchObject({ delivery: POLICY, paused: true });
    const other = await change('PATCH', { delivery: { max_concurrency: 1 } });
    expect(other.delivery).toEqual({ max_concurrency: 1 });
    expect((await change('PATCH', { delivery: {} })).delivery).toBeNull();
    await change('PATCH', { delivery: POLICY });
    expect(await change('PATCH', { delivery: null, paused: false })).toMatchObject({
      ...{ delivery: null, paused: false, version: 1 },
    });
    const { rows } = await api.pool.query(
      `select detail->'changes' as changes from activity_log where item_id = $1 and activity = 'updated'`,
      [made.id],
    );
    expect(rows.flatMap(({ changes }) => changes)).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ field: 'delivery', after: POLICY }),
        expect.objectContaining({ field: 'paused', after: true }),
      ]),
    );
  });

  test('comes with a new function, also of type internal_destination', async () => {
    const answer = await create({ type: 'internal_destination', delivery: POLICY, paused: true });
    expect([answer.statusCode, answer.json()]).toMatchObject([201, { delivery: POLICY, paused: true }]);
  });

  test.each(['transformation', 'source_webhook', 'site_app', 'site_destination'])(
    'is refused for a %s',
    async (type) => {
      const hog = type.startsWith('site') ? 'export function onLoad() {}' : 'return event';
      const refused = async (fields: object) => {
        const answer = await create({ type, hog, ...fields });
        return [answer.statusCode, answer.json().attr, answer.json().detail];
      };
      const only = `only for functions of type destination and internal_destination, and this one has the type ${type}.`;
      expect(await refused({ delivery: POLICY })).toEqual([
        400,
        'delivery',
        `A policy of delivery is ${only}`,
      ]);
      expect(await refused({ paused: true })).toEqual([400, 'paused', `\`paused\` is ${only}`]);
      const made = await create({ type, hog, delivery: null, paused: false });
      expect(made.statusCode).toBe(201);
      const changed = await api.request(anna, 'PATCH', path(`${made.json().id}/`), { delivery: POLICY });
      expect([changed.statusCode, changed.json().attr]).toEqual([400, 'delivery']);
    },
  );

  test.each([
    [{ max_concurrency: 0 }, 'delivery__max_concurrency'],
    [{ max_concurrency: 1_001 }, 'delivery__max_concurrency'],
    [{ max_concurrency: 1.5 }, 'delivery__max_concurrency'],
    [{ rate_per_second: 0 }, 'delivery__rate_per_second'],
    [{ rate_per_second: 10_001 }, 'delivery__rate_per_second'],
    [{ retry: { max_attempts: 0 } }, 'delivery__retry__max_attempts'],
    [{ retry: { max_attempts: 101 } }, 'delivery__retry__max_attempts'],
    [{ retry: { max_age_seconds: 59 } }, 'delivery__retry__max_age_seconds'],
    [{ retry: { max_age_seconds: 30 * 86_400 + 1 } }, 'delivery__retry__max_age_seconds'],
    [{ retry: { statuses: [399] } }, 'delivery__retry__statuses__0'],
    [{ retry: { statuses: [500, '3xx'] } }, 'delivery__retry__statuses__1'],
    [{ ordering: 'person' }, 'delivery__ordering'],
    [{ max_concurency: 1 }, 'max_concurency'],
    [{ retry: { attempts: 1 } }, 'attempts'],
  ])('%j is refused', async (delivery, attr) => {
    const answer = await create({ delivery });
    expect([answer.statusCode, answer.json().attr]).toEqual([400, attr]);
  });
});

describe('what may be claimed', () => {
  const of = (policy: object, inProgress = 0, nextIn = 0) =>
    allowanceOf({ policy, inProgress, nextIn, places: 10 });

  test('is what the policy and the places leave', () => {
    expect(of({}).count).toBe(10);
    expect(of({ max_concurrency: 4 }).count).toBe(4);
    expect(of({ max_concurrency: 4 }, 3).count).toBe(1);
    expect(of({ max_concurrency: 4 }, 9).count).toBe(0);
    expect(of({ max_concurrency: 40 }).count).toBe(10);
    expect(of({ max_concurrency: 2, rate_per_second: 20 }).count).toBe(2);
  });

  test('begins at even distances, some time ahead', () => {
    const twenty = of({ rate_per_second: 20 }, 0, -5_000);
    expect(twenty).toMatchObject({ count: 5, first: 0, apart: 50 });
    // The sixth is at 250 ms.
    expect(nextClaim(twenty, 5)).toBe(250 - AHEAD);
    expect(nextClaim(twenty, 4)).toBeNull();
    expect(of({ rate_per_second: 20 }, 0, 120)).toMatchObject({ count: 2, first: 120 });
    const early = of({ rate_per_second: 0.01 }, 0, 100_000);
    expect(early.count).toBe(0);
    expect(nextClaim(early, 0)).toBe(100_000 - AHEAD);
    expect(nextClaim(of({}), 10)).toBeNull();
  });
});

describe('a policy of attempts', () => {
  const pauseAfter = (policy: object, attempt: number, age = 0, retryAfter: number | null = null) =>
    nextAttempt({ attempt, age, retryAfter, random: 0.5 }, policy);

  test('names the statuses that are repeated', () => {
    const statuses = { statuses: [404, '5xx' as const] };
    expect([404, 500, 599, 429, 400, null].map((one) => isTemporary(one, statuses))).toEqual([
      ...[true, true, true, false, false, true],
    ]);
    expect([503, null].map((one) => isTemporary(one, { statuses: [] }))).toEqual([false, true]);
  });

  test('limits attempts and age', () => {
    expect(pauseAfter({ max_attempts: 1 }, 1)).toBeNull();
    expect(pauseAfter({ max_attempts: 2 }, 1)).toBe(1_500);
    expect(pauseAfter({ max_age_seconds: 60 }, 2, 600_000)).toBe(2_500);
    expect(pauseAfter({ max_age_seconds: 60 }, 3, 20_000)).toBe(30_000);
    expect(pauseAfter({ max_age_seconds: 60 }, 3, 31_000)).toBeNull();
    expect(pauseAfter({ max_age_seconds: 3_600 }, 1, 0, 86_400_000)).toBe(3_600_000);
  });

  test('of many days has longer pauses', () => {
    const days = { max_age_seconds: 30 * 86_400 };
    expect(pauseAfter(days, 20, 86_400_000)).toBe(12 * 3_600_000);
    expect(pauseAfter({}, 20)).toBe(3_600_000);
  });
});
