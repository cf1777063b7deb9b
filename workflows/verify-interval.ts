import {
  ActivityFailure,
  ApplicationFailure,
  allHandlersFinished,
  condition,
  defineSignal,
  defineUpdate,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { HeavyActivities } from '../activities/index.ts';
import type { VerifyReport } from '../exports/rules/verify-report.ts';
import type { VerifyIntervalInput } from '../exports/temporal.ts';
import { backfillsQueue, VERIFY_REPORT, VERIFY_TAKEN } from './names.ts';
import { queueForPlace } from './place.ts';

/** The most tries of the activity. Those that end because another worker has a place are not attempts. */
const MOST_TRIES = 100;
/** How long a report waits for a client. After that, the next request starts a new verification. */
const KEPT = '10 minutes';

/** Compares an interval with its source and its destination, and keeps the report until a client has received it. */
export async function verifyInterval(input: VerifyIntervalInput): Promise<VerifyReport> {
  let report: VerifyReport | undefined;
  let failure: string | undefined;
  let taken = false;
  const queue = queueForPlace();
  setHandler(
    defineUpdate<VerifyReport>(VERIFY_REPORT),
    async () => {
      await condition(() => report !== undefined || failure !== undefined);
      if (report) return report;
      throw ApplicationFailure.nonRetryable(failure ?? 'The interval could not be verified.');
    },
    {
      // A client that asks after the report was received wants a new one.
      validator() {
        if (taken) throw ApplicationFailure.nonRetryable('The report was taken', VERIFY_TAKEN);
      },
    },
  );
  setHandler(defineSignal(VERIFY_TAKEN), () => {
    taken = true;
  });
  const { compareInterval } = proxyActivities<HeavyActivities>({
    taskQueue: backfillsQueue(workflowInfo().taskQueue),
    startToCloseTimeout: '6 hours',
    heartbeatTimeout: '1 minute',
    retry: {
      initialInterval: '1 second',
      backoffCoefficient: 2,
      maximumInterval: '30 seconds',
      // The activity itself counts its attempts, and says which one is the last.
      maximumAttempts: MOST_TRIES,
    },
  });
  const { workflowId, runId } = workflowInfo();
  const compare = () => {
    setCurrentDetails('**Running**');
    return compareInterval({ ...input, workflow: { id: workflowId, runId } });
  };
  try {
    report = await queue.inTurn(compare, (since) =>
      setCurrentDetails(`**Waiting for a place** since ${since}`),
    );
    setCurrentDetails(`**${report.verdict}** ${report.problems.length} problems`);
  } catch (error) {
    if (!(error instanceof ActivityFailure)) throw error;
    failure = error.cause?.message ?? error.message;
  }
  await condition(() => taken, KEPT);
  await condition(allHandlersFinished);
  if (report) return report;
  throw ApplicationFailure.nonRetryable(failure);
}
