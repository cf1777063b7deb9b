import { beforeEach, describe, expect, test } from '@jest/globals';
import { uuidv7 } from '../../../db/uuid.ts';
import { callWaiting } from '../../../exports/rows/place-queue.ts';
import {
  announceWorker,
  findWaits,
  forgetEnded,
  sumPlaces,
  withdrawWorker,
} from '../../../exports/rows/place-workers.ts';
import type { Claim, PlaceTimes } from '../../../exports/rows/places.ts';
import { beginAttempt, completeRun, holdsFence, markRunEnded, startRun } from '../../../exports/rows/runs.ts';
import {
  type Ending,
  listKept,
  releasePlace,
  renewPlace,
  stopAsking,
  type Taken,
  takePlace,
} from '../../../exports/rows/worker-places.ts';
import { databaseForFile } from '../../support/database.ts';
import { eventually } from '../../support/eventually.ts';
import { keyOf, newExport, runOf } from './support.ts';

const database = databaseForFile();
const LONG = 600_000;
const TIMES: PlaceTimes = { lease: LONG, reservation: LONG, setback: LONG, ask: 0 };
const worker = uuidv7();
const other = uuidv7();

/** Somebody who asks for a place: a verification, so that it needs no run. */
const claimOf = (given: Partial<Claim> = {}): Claim => ({
  projectId: 1,
  id: uuidv7(),
  exportId: uuidv7(),
  kind: 'verification',
  lane: 'exports',
  workflowId: 'w',
  ...given,
});
const take = async (claim: Claim, at = worker, times = TIMES) =>
  (await takePlace(database.pool, claim, at, times)).taken;
const held = async (claim: Claim, at = worker, times = TIMES) => {
  const taken = await take(claim, at, times);
  if (taken.outcome !== 'held') throw new Error(taken.outcome);
  return taken;
};
const announce = (places: number, at = worker) =>
  announceWorker(database.pool, at, { exports: places, backfills: 1 }, LONG);
const release = (claim: Claim, fence: number, ending: Ending = { over: true, completed: true }) =>
  releasePlace(database.pool, claim, fence, ending, TIMES);
/** Takes the place of one at work, and answers who gets it. */
const next = async (claim: Claim, fence: number, ending?: Ending) =>
  (await release(claim, fence, ending)).map((one) => one.workflow_id);

/** Such a claim of an export whose last work was completed, in the other lane and long ago. */
const provenOf = async (given: Partial<Claim> = {}): Promise<Claim> => {
  const claim = claimOf(given);
  await database.pool.query(
    `insert into batch_export_turns (project_id, lane, batch_export_id, given_at, proven)
     values ($1, $2, $3, '2000-01-01', true) on conflict do nothing`,
    [claim.projectId, claim.lane === 'exports' ? 'backfills' : 'exports', claim.exportId],
  );
  return claim;
};

beforeEach(async () => {
  await database.pool.query(
    'delete from batch_export_places; delete from batch_export_turns; delete from batch_export_workers',
  );
});

describe('who gets a place', () => {
  test('an export alone may have them all, and what is more waits', async () => {
    await announce(3);
    const exportId = uuidv7();
    for (let n = 0; n < 3; n += 1) await held(claimOf({ exportId }));
    expect(await take(claimOf({ exportId }))).toMatchObject({ outcome: 'waiting' });
    expect((await sumPlaces(database.pool))[0]).toMatchObject({
      lane: 'exports',
      places: 3,
      taken: 3,
      waiting: 1,
    });
  });

  test('the lanes do not share places', async () => {
    await announce(1);
    await held(claimOf());
    await held(claimOf({ lane: 'backfills' }));
    expect(await take(claimOf({ lane: 'backfills' }))).toMatchObject({ outcome: 'waiting' });
  });

  test('first the project that has the fewest, then the export that has the fewest, then who came first', async () => {
    await announce(3);
    const [busy, quiet] = [uuidv7(), uuidv7()];
    const first = await provenOf({ projectId: 1, exportId: busy });
    const { fence } = await held(first);
    await held(await provenOf({ projectId: 1, exportId: busy }));
    const ending = await provenOf({ projectId: 3 });
    const end = await held(ending);
    for (const [workflowId, projectId, exportId] of [
      ['busy, early', 1, busy],
      ['busy, late', 1, busy],
      ['quiet', 1, quiet],
      ['other project, early', 2, uuidv7()],
      ['other project, late', 2, uuidv7()],
    ] as const)
      expect(await take(await provenOf({ workflowId, projectId, exportId }))).toMatchObject({
        outcome: 'waiting',
      });

    expect(await next(ending, end.fence)).toEqual(['other project, early']);
    // Project 1 has one left, as many as project 2: then it matters what the exports have.
    expect(await next(first, fence)).toEqual(['quiet']);
  });

  test('what a project has counts before whose turn it is', async () => {
    await announce(2);
    await held(claimOf({ projectId: 1 }));
    const ended = claimOf({ projectId: 2 });
    await release(ended, (await held(ended)).fence);
    const last = claimOf({ projectId: 3 });
    const { fence } = await held(last);
    for (const [workflowId, projectId] of [
      ['has one, long ago', 1],
      ['has none, had one since', 2],
    ] as const)
      await take(claimOf({ workflowId, projectId }));
    expect(await next(last, fence)).toEqual(['has none, had one since']);
  });

  test('whether an export fails counts before whose turn it is', async () => {
    await announce(1);
    const [dead, fine] = [uuidv7(), uuidv7()];
    const attempt = claimOf({ exportId: dead });
    await release(attempt, (await held(attempt)).fence, { over: false, completed: false });
    const working = claimOf({ exportId: fine });
    const { fence } = await held(working);
    await take(claimOf({ exportId: dead, workflowId: 'dead' }));
    await take(claimOf({ exportId: fine, workflowId: 'fine' }));
    expect(await next(working, fence)).toEqual(['fine']);
  });

  test('an export that fails stands behind its equals for a while, and then in its turn', async () => {
    await announce(1);
    const [dead, fine] = [uuidv7(), uuidv7()];
    const attempt = await provenOf({ exportId: dead });
    const { fence } = await held(attempt);
    // A new run of the same export counts as failing too, whichever run failed.
    await take(await provenOf({ exportId: dead, workflowId: 'dead', projectId: 1 }));
    await take(await provenOf({ exportId: fine, workflowId: 'fine', projectId: 1 }));
    await take(await provenOf({ exportId: uuidv7(), workflowId: 'fine, later', projectId: 1 }));
    expect(await next(attempt, fence, { over: false, completed: false })).toEqual(['fine']);

    // The setback is over: among equals, each export has its turn. The place of the dead one is given away once more.
    const again = async () => {
      await database.pool.query('update batch_export_places set leased_until = null');
      const called = await callWaiting(database.pool, 'exports', { ...TIMES, setback: 0 }, LONG);
      return called.map((one) => one.workflow_id);
    };
    expect([await again(), await again(), await again()]).toEqual([
      ['fine, later'],
      ['dead', 'fine'],
      ['fine, later'],
    ]);
  });

  describe('where exports that do not get on hold the places', () => {
    /** An export whose last work was completed. */
    const proven = async (given: Partial<Claim> = {}) => {
      const claim = claimOf(given);
      await release(claim, (await held(claim)).fence);
      return claim;
    };
    /** Attempts at work of different exports that stand still. */
    const standing = async (count: number, given: Partial<Claim> = {}) => {
      const claims = Array.from({ length: count }, () => claimOf(given));
      for (const claim of claims) {
        const { fence } = await held(claim);
        expect(await renewPlace(database.pool, claim, { fence, lease: LONG }, true)).toBe(true);
      }
      return claims;
    };
    const outcome = async (claim: Claim) => (await take(claim)).outcome;

    test('others get half as many again, and no more', async () => {
      await announce(3);
      const exportId = uuidv7();
      await proven({ exportId });
      await standing(3);
      const outcomes = [];
      for (let n = 0; n < 3; n += 1) outcomes.push(await outcome(claimOf({ exportId })));
      expect(outcomes).toEqual(['held', 'held', 'waiting']);
      expect((await sumPlaces(database.pool))[0]).toMatchObject({ places: 3, taken: 5, waiting: 1 });
    });

    test('those that stand still do not get them, nor those that are new', async () => {
      await announce(2);
      const fine = await proven();
      const [dead] = await standing(2);
      const again = claimOf({ exportId: (dead as Claim).exportId, workflowId: 'dead again' });
      expect([await outcome(again), await outcome(claimOf()), await outcome(fine)]).toEqual([
        'waiting',
        'waiting',
        'held',
      ]);
    });

    test('nor does one that stands still, though its last work was completed', async () => {
      await announce(2);
      const { exportId } = await proven();
      const fine = await proven();
      await standing(1, { exportId });
      await standing(1);
      expect([await outcome(claimOf({ exportId })), await outcome(fine)]).toEqual(['waiting', 'held']);
    });

    test('nobody does while they move', async () => {
      await announce(2);
      const fine = await proven();
      for (const { exportId } of [await proven(), await proven()]) {
        const claim = claimOf({ exportId });
        const { fence } = await held(claim);
        await renewPlace(database.pool, claim, { fence, lease: LONG });
      }
      expect(await outcome(fine)).toBe('waiting');
    });

    test('the places of exports that never completed anything count as theirs, before they stand still', async () => {
      await announce(2);
      const fine = await proven();
      for (let n = 0; n < 2; n += 1) await held(claimOf());
      expect([await outcome(claimOf()), await outcome(fine)]).toEqual(['waiting', 'held']);
    });

    test.each<[what: string, ending: Ending, expected: Taken['outcome']]>([
      ['failed for good', { over: true, completed: false }, 'waiting'],
      ['was told to stop', { over: true }, 'held'],
      ['was completed', { over: true, completed: true }, 'held'],
    ])('what counts is the last work of an export, in either lane: it %s', async (_, ending, expected) => {
      await announce(2);
      const { exportId } = await proven();
      const last = claimOf({ exportId, lane: 'backfills' });
      await release(last, (await held(last)).fence, ending);
      await standing(2);
      expect(await outcome(claimOf({ exportId }))).toBe(expected);
    });

    test('one that is kept so stays kept, for the worker that can do it', async () => {
      await announce(1);
      await announce(1, other);
      const fine = await proven();
      for (const at of [worker, other]) {
        const claim = claimOf();
        const { fence } = await held(claim, at);
        await renewPlace(database.pool, claim, { fence, lease: LONG }, true);
      }
      await held(claimOf({ exportId: fine.exportId }));
      const waiting = claimOf({ exportId: fine.exportId });
      // Each worker has one place that stands still, and one to spare for that. This one has given it away.
      expect(await outcome(waiting)).toBe('elsewhere');
      expect(await callWaiting(database.pool, 'exports', TIMES, LONG)).toEqual([]);
      expect(await listKept(database.pool, [waiting.id])).toEqual([waiting.id]);
      await held(waiting, other);
    });

    test('one that is kept for them is theirs, also if others come first', async () => {
      await announce(1);
      const fine = await proven();
      const dead = claimOf({ workflowId: 'dead' });
      await release(dead, (await held(dead)).fence, { over: false, completed: false });
      const first = claimOf();
      const { fence } = await held(first);
      expect(await outcome(dead)).toBe('waiting');
      expect(await next(first, fence)).toEqual(['dead']);
      await held(claimOf({ exportId: fine.exportId }));
      await held(dead);
      expect(await outcome(claimOf({ exportId: fine.exportId }))).toBe('waiting');
    });

    test('the place of one that ends goes to nobody until as many are left as there are', async () => {
      await announce(2);
      const fine = await proven();
      const [first, second] = await standing(2);
      const { fence } = await held(claimOf({ exportId: fine.exportId }));
      expect(fence).toBeGreaterThan(0);
      const dead = claimOf({ workflowId: 'new and dead' });
      expect(await outcome(dead)).toBe('waiting');
      const fenceOf = async ({ id }: Claim) =>
        (await database.pool.query('select fence from batch_export_places where id = $1', [id])).rows[0]
          .fence;
      expect(await next(first as Claim, await fenceOf(first as Claim))).toEqual([]);
      expect(await next(second as Claim, await fenceOf(second as Claim))).toEqual(['new and dead']);
    });
  });

  test('projects take turns, and so do the exports of a project, also where there is one place', async () => {
    await announce(1);
    const [flood, quiet] = [uuidv7(), uuidv7()];
    const first = await provenOf({ exportId: flood });
    const { fence } = await held(first);
    for (const workflowId of ['flood 1', 'flood 2', 'flood 3'])
      await take(await provenOf({ exportId: flood, workflowId }));
    await take(await provenOf({ exportId: quiet, workflowId: 'quiet' }));
    await take(await provenOf({ projectId: 2, workflowId: 'other project' }));
    const order = await next(first, fence);
    for (let n = 0; n < 4; n += 1) {
      await database.pool.query('delete from batch_export_places where leased_until is not null');
      const called = await callWaiting(database.pool, 'exports', TIMES, LONG);
      order.push(...called.map((one) => one.workflow_id));
    }
    expect(order).toEqual(['other project', 'quiet', 'flood 1', 'flood 2', 'flood 3']);
  });

  test('somebody who comes later does not pass those who wait', async () => {
    await announce(1);
    const first = claimOf();
    const { fence } = await held(first);
    const waiting = claimOf({ workflowId: 'waits' });
    await take(waiting);
    expect(await next(first, fence)).toEqual(['waits']);
    expect(await take(claimOf())).toMatchObject({ outcome: 'waiting' });
    await held(waiting);
  });

  test('any number at once get exactly the places that there are', async () => {
    await announce(3);
    const taken = await Promise.all(Array.from({ length: 9 }, () => take(claimOf())));
    expect(taken.filter((one) => one.outcome === 'held')).toHaveLength(3);
    expect(taken.filter((one) => one.outcome === 'waiting')).toHaveLength(6);
  });
});

describe('a place', () => {
  test('belongs to a worker: another one has it, and keeps it until it is asked there', async () => {
    await announce(1);
    await held(claimOf());
    await announce(1, other);
    const claim = claimOf();
    expect(await take(claim)).toEqual({ outcome: 'elsewhere' });
    // Nobody else gets it meanwhile.
    expect(await take(claimOf(), other)).toMatchObject({ outcome: 'waiting' });
    await held(claim, other);
  });

  test('is free again when nobody renews it, and whoever had it finds out', async () => {
    await announce(1);
    const dead = claimOf();
    const { fence } = await held(dead, worker, { ...TIMES, lease: 1 });
    const key = { projectId: 1, id: dead.id };
    await eventually(
      async () => (await take(claimOf({ id: dead.id.replace(/^./, 'f') }))).outcome === 'held',
    );
    expect(await renewPlace(database.pool, key, { fence, lease: LONG })).toBe(false);
    expect(await release(dead, fence)).toEqual([]);
    expect((await sumPlaces(database.pool))[0]).toMatchObject({ taken: 1 });
  });

  test('is not free while it is renewed, however late', async () => {
    await announce(1);
    const claim = claimOf();
    const { fence } = await held(claim, worker, { ...TIMES, lease: 1 });
    expect(await renewPlace(database.pool, { projectId: 1, id: claim.id }, { fence, lease: LONG })).toBe(
      true,
    );
    expect(await take(claimOf())).toMatchObject({ outcome: 'waiting' });
  });

  test('stays with the work whose worker was lost, but not with its earlier attempt', async () => {
    await announce(1);
    const claim = claimOf();
    const lost = await held(claim);
    await announce(1, other);
    await withdrawWorker(database.pool, worker);
    expect(await take(claimOf(), other)).toMatchObject({ outcome: 'waiting' });
    const again = await held(claim, other);
    expect(again.attempts).toBe(2);
    expect(await renewPlace(database.pool, { projectId: 1, id: claim.id }, { ...lost, lease: LONG })).toBe(
      false,
    );
  });

  test('is given back by nobody but the attempt that has it', async () => {
    await announce(1);
    const claim = claimOf();
    const lost = await held(claim);
    await announce(1, other);
    await withdrawWorker(database.pool, worker);
    const waiting = claimOf({ workflowId: 'waits' });
    await take(waiting, other);
    const again = await held(claim, other);
    for (const over of [false, true]) {
      expect(await next(claim, lost.fence, { over, completed: true })).toEqual([]);
    }
    expect(await take(waiting, other)).toMatchObject({ outcome: 'waiting' });
    expect(
      await renewPlace(database.pool, { projectId: 1, id: claim.id }, { fence: again.fence, lease: LONG }),
    ).toBe(true);
    expect(await next(claim, again.fence)).toEqual(['waits']);
  });

  test('that is kept for somebody who does not come goes to the next, and comes round again', async () => {
    await announce(1);
    const first = claimOf();
    const { fence } = await held(first);
    await take(claimOf({ workflowId: 'deaf' }));
    await take(claimOf({ workflowId: 'hears' }));
    const short = { ...TIMES, reservation: 1 };
    expect(await releasePlace(database.pool, first, fence, { over: true, completed: true }, short)).toEqual([
      expect.objectContaining({ workflow_id: 'deaf' }),
    ]);
    const called = () =>
      eventually(async () => {
        const [one] = await callWaiting(database.pool, 'exports', short, LONG);
        return one?.workflow_id;
      });
    expect([await called(), await called()]).toEqual(['hears', 'deaf']);
  });

  test('is announced again to those who were told and have not come', async () => {
    await announce(1);
    const first = claimOf();
    const { fence } = await held(first);
    const waiting = claimOf({ workflowId: 'waits' });
    await take(waiting);
    await release(first, fence);
    expect(await callWaiting(database.pool, 'exports', TIMES, LONG)).toEqual([]);
    expect(await callWaiting(database.pool, 'exports', TIMES, 0)).toEqual([
      expect.objectContaining({ workflow_id: 'waits' }),
    ]);
    await held(waiting);
    expect(await callWaiting(database.pool, 'exports', TIMES, 0)).toEqual([]);
  });

  test('that was kept at a worker that is gone is kept no longer: it waits, in its old turn', async () => {
    await announce(1);
    await announce(1, other);
    const working = await provenOf();
    const { fence } = await held(working);
    const second = await provenOf();
    const theirs = await held(second, other);
    const exportId = uuidv7();
    const waiting = await provenOf({ exportId });
    await take(waiting);
    await take(await provenOf({ exportId }));
    expect(await release(second, theirs.fence)).toMatchObject([{ id: waiting.id }]);
    await withdrawWorker(database.pool, other);
    expect(await take(waiting)).toMatchObject({ outcome: 'waiting' });
    expect(await release(working, fence)).toMatchObject([{ id: waiting.id }]);
  });

  test('of a worker that says nothing any more does not count', async () => {
    await announceWorker(database.pool, worker, { exports: 5, backfills: 1 }, 1);
    await eventually(async () => (await sumPlaces(database.pool))[0]?.places === 0);
    expect(await take(claimOf())).toMatchObject({ outcome: 'waiting' });
  });

  test('counts the attempts at the work, also when it waited between two of them', async () => {
    await announce(1);
    const claim = claimOf();
    for (let attempts = 1; attempts <= 3; attempts += 1) {
      const taken = await held(claim);
      expect(taken.attempts).toBe(attempts);
      const waiting = claimOf();
      await take(waiting);
      await release(claim, taken.fence, { over: false, completed: false });
      expect(await take(claim)).toMatchObject({ outcome: 'waiting' });
      await release(waiting, (await held(waiting)).fence);
    }
  });
});

describe('an activity that asks', () => {
  test('looks for itself, and its workflow is told only when it has stopped', async () => {
    await announce(1);
    const first = claimOf();
    const { fence } = await held(first);
    const asking = claimOf();
    expect(await take(asking, worker, { ...TIMES, ask: LONG })).toMatchObject({ outcome: 'waiting' });
    expect(await listKept(database.pool, [asking.id])).toEqual([]);
    expect(await release(first, fence)).toMatchObject([{ id: asking.id, asks: true }]);
    expect(await callWaiting(database.pool, 'exports', TIMES, 0)).toEqual([]);
    expect(await listKept(database.pool, [asking.id])).toEqual([asking.id]);
    expect(await stopAsking(database.pool, asking)).toBe(true);
    expect(await callWaiting(database.pool, 'exports', TIMES, 0)).toMatchObject([
      { id: asking.id, asks: false },
    ]);
  });

  test('that has stopped before there was a place hears of it through its workflow', async () => {
    await announce(1);
    const first = claimOf();
    const { fence } = await held(first);
    const asking = claimOf();
    await take(asking, worker, { ...TIMES, ask: LONG });
    expect(await stopAsking(database.pool, asking)).toBe(false);
    expect(await release(first, fence)).toMatchObject([{ id: asking.id, asks: false }]);
  });
});

describe('a run', () => {
  async function begun() {
    const { pool } = database;
    const key = keyOf(await newExport(pool));
    const { run } = await startRun(pool, runOf(key, 0));
    const claim = claimOf({ ...key, id: run.id, kind: 'run' });
    return { key, of: { projectId: 1, runId: run.id }, claim };
  }

  test('that has ended asks for nothing, and leaves the queue', async () => {
    const { key, of, claim } = await begun();
    expect(await take(claim)).toMatchObject({ outcome: 'waiting' });
    expect(await findWaits(database.pool, [key])).toEqual(
      new Map([[key.exportId, { runs: 1, since: expect.any(String) }]]),
    );
    await markRunEnded(database.pool, of, 'Cancelled', null);
    expect(await findWaits(database.pool, [key])).toEqual(new Map());
    await announce(1);
    expect(await take(claim)).toEqual({ outcome: 'over' });
  });

  test('that ends while it works gives its place back with the end of the attempt', async () => {
    const { of, claim } = await begun();
    await announce(1);
    const { fence } = await held(claim);
    await markRunEnded(database.pool, of, 'Cancelled', null);
    expect(await take(claimOf())).toMatchObject({ outcome: 'waiting' });
    expect(await release(claim, fence, { over: false })).toHaveLength(1);
    const { rows } = await database.pool.query('select from batch_export_places where id = $1', [claim.id]);
    expect(rows).toEqual([]);
  });

  test('changes nothing any more when it has lost its place', async () => {
    const { of, claim } = await begun();
    await announce(1);
    const place = await held(claim, worker, { ...TIMES, lease: 1 });
    const attempt = (await beginAttempt(database.pool, of))!;
    expect(await holdsFence(database.pool, of, attempt.fence, place.fence)).toBe(true);
    await eventually(async () => (await take(claimOf())).outcome === 'held');
    expect(await holdsFence(database.pool, of, attempt.fence, place.fence)).toBe(false);
    expect(await completeRun(database.pool, of, attempt.fence, {}, place.fence)).toBeUndefined();
  });

  test('that ended between two attempts is forgotten', async () => {
    const { of, claim } = await begun();
    await announce(1);
    const { fence } = await held(claim);
    await release(claim, fence, { over: false, completed: false });
    expect(await forgetEnded(database.pool, 10)).toBe(0);
    await database.pool.query(`update batch_export_runs set status = 'Terminated' where id = $1`, [of.runId]);
    expect(await forgetEnded(database.pool, 10)).toBe(1);
  });
});
