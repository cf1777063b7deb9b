import { beforeEach, describe, expect, test } from '@jest/globals';
import type { AttemptDependencies } from '../../functions/delivery/attempts.ts';
import { Deliverer } from '../../functions/delivery/deliverer.ts';
import type { NewInvocation } from '../../functions/rows/queue.ts';

// What a worker takes of invocations that are about to be queued. Nothing is asked of Postgres for that.
const [ANNA, BOB] = [1, 2];
const LEASE = 30;
let deliverer: Deliverer;
beforeEach(() => {
  deliverer = new Deliverer({} as AttemptDependencies, { places: 100, leaseSeconds: LEASE });
});

let next = 0;
const invocations = (count: number, functionId = 'one', projectId = ANNA): NewInvocation[] =>
  Array.from({ length: count }, () => {
    next += 1;
    return {
      ...{ id: `i${next}`, projectId, functionId, version: 1, mapping: null, uuid: `e${next}` },
      ...{
        timestamp: '2026-01-01T00:00:00Z',
        distinctId: 'ada',
        personId: null,
        groups: null,
        clock: 0,
        seed: 1,
      },
    };
  });
const idsOf = (some: readonly NewInvocation[]) => new Set(some.map(({ id }) => id));
const taken = (some: readonly NewInvocation[]) => deliverer.take(some)?.ids ?? new Set();

test('all of a few are taken, under one lease', () => {
  const some = [...invocations(3), ...invocations(2, 'two'), ...invocations(1, 'three', BOB)];
  const one = deliverer.take(some);
  expect(one).toMatchObject({ ids: idsOf(some), lease: expect.any(String), seconds: LEASE });
});

test('of many in a turn none is taken: they would have to be begun at once', () => {
  expect(taken(invocations(32)).size).toBe(32);
  expect(deliverer.take(invocations(33))).toBeUndefined();
});

describe('nothing is taken', () => {
  test('of a function of which something older is due, and of others it is', () => {
    deliverer.due([{ projectId: ANNA, functionId: 'one' }]);
    const other = invocations(2, 'two');
    expect(taken([...invocations(2), ...other])).toEqual(idsOf(other));
    expect(deliverer.take(invocations(1))).toBeUndefined();
  });

  test('by a worker that ends', async () => {
    deliverer = new Deliverer({} as AttemptDependencies, { places: 100 });
    await deliverer.close();
    expect(deliverer.take(invocations(1))).toBeUndefined();
  });
});

describe('a claim under way holds places', () => {
  test('until nobody knows whether it was made', () => {
    // A project has three quarters of the places. A function gets two thirds of what is left of them.
    const claims = Array.from({ length: 4 }, () => deliverer.take(invocations(32)));
    expect(claims.map((one) => one?.ids.size ?? 0)).toEqual([32, 29, 10, 3]);
    for (const one of claims) one?.drop();
    expect(taken(invocations(32)).size).toBe(32);
  });

  test('until it has begun, also if none of it was queued', () => {
    const claims = Array.from({ length: 4 }, () => deliverer.take(invocations(32)));
    for (const one of claims) one?.begin([]);
    expect(taken(invocations(32)).size).toBe(32);
  });

  test('and a worker that ends waits for it', async () => {
    const one = deliverer.take(invocations(1));
    let isOver = false;
    const closing = deliverer.close().then(() => {
      isOver = true;
    });
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(isOver).toBe(false);
    one?.begin([]);
    await closing;
  });
});
