import { describe, expect, test } from '@jest/globals';
import { ApplicationFailure, CancelledFailure } from '@temporalio/activity';
import { ActivityCancellationDetails, ApplicationFailureCategory } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { inActivity } from '../../activities/work.ts';
import { NoticeError } from '../../egress/operator-notices.ts';
import { AttemptFailedError } from '../../exports/runs/judgement.ts';
import { BusyError } from '../../exports/runs/start-run.ts';
import type { WorkAttempt } from '../../exports/runs/work.ts';
import { refuse } from '../../refusals.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { temporalLogger } from '../../worker/temporal-logger.ts';

const logger = temporalLogger(createLogger({ name: 'test', level: 'silent' }));
const { BENIGN } = ApplicationFailureCategory;

/** What Temporal gets of a third attempt that throws this. */
const thrown = (error: unknown): Promise<unknown> =>
  new MockActivityEnvironment({ attempt: 3 }, { logger })
    .run(() => inActivity(() => Promise.reject(error)))
    .catch((failure) => failure);

describe('what a product throws becomes a failure that Temporal knows what to do with', () => {
  test.each([
    [
      'an attempt that another one follows: after 1, 2, 4 … seconds',
      new AttemptFailedError({ message: 'away', reason: 'unreachable', again: true }, 3),
      { type: 'unreachable', message: 'away', nonRetryable: false, nextRetryDelay: 4_000, category: BENIGN },
    ],
    [
      'an attempt that somebody has to act after',
      new AttemptFailedError({ message: 'no rights', reason: 'denied', again: false }, 3),
      { type: 'denied', message: 'no rights', nonRetryable: true, category: BENIGN },
    ],
    [
      'an interval that another run exports',
      new BusyError('wait'),
      { type: 'Busy', message: 'wait', nonRetryable: false, nextRetryDelay: '5 seconds', category: BENIGN },
    ],
    [
      'a webhook that is away',
      new NoticeError('away', true),
      { type: 'notice', message: 'away', nonRetryable: false, nextRetryDelay: undefined, category: BENIGN },
    ],
    [
      'a webhook that refuses',
      new NoticeError('no', false),
      { type: 'notice', message: 'no', nonRetryable: true, category: BENIGN },
    ],
    [
      'a refusal',
      refuse.absent('The batch export was deleted.'),
      { message: 'The batch export was deleted.', nonRetryable: true },
    ],
  ])('%s', async (_what, error, failure) => {
    const found = await thrown(error);
    expect(found).toBeInstanceOf(ApplicationFailure);
    expect({ ...(found as ApplicationFailure), message: (found as Error).message }).toMatchObject(failure);
  });

  test('anything else stays what it is, and the policy of the workflow decides', async () => {
    const error = new Error('unforeseen');
    expect(await thrown(error)).toBe(error);
  });
});

describe('work that has to stop', () => {
  /** Stops the work for a reason; answers what it saw and how the activity ends. */
  async function stop(reason: string, details?: ActivityCancellationDetails) {
    const environment = new MockActivityEnvironment({}, { logger });
    let seen: WorkAttempt | undefined;
    const ends = environment.run(() =>
      inActivity(async (work) => {
        seen = work;
        await new Promise((resolve) => work.signal.addEventListener('abort', resolve));
        throw work.signal.reason;
      }),
    );
    environment.cancel(reason as Parameters<typeof environment.cancel>[0], details);
    const failure = await ends.catch((error: unknown) => error);
    return { failure, work: seen as WorkAttempt };
  }

  test('because it was cancelled ends as cancelled', async () => {
    const { failure, work } = await stop('CANCELLED');
    expect(failure).toBeInstanceOf(CancelledFailure);
    expect([work.signal.aborted, work.isOutOfTime()]).toEqual([true, false]);
  });

  test('because it took too long is told so', async () => {
    const { failure, work } = await stop('TIMED_OUT', new ActivityCancellationDetails({ timedOut: true }));
    expect(failure).toBeInstanceOf(CancelledFailure);
    expect(work.isOutOfTime()).toBe(true);
  });

  test('because its worker stops is for another worker, at once', async () => {
    const { failure } = await stop('WORKER_SHUTDOWN');
    expect(failure).toMatchObject({ type: 'worker-stopped', nonRetryable: false, nextRetryDelay: 1 });
  });
});
