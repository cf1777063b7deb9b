import { defineSearchAttributeKey } from '@temporalio/common';
import {
  ActivityCancellationType,
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  continueAsNew,
  deprecatePatch,
  isCancellation,
  log,
  ParentClosePolicy,
  proxyActivities,
  setCurrentDetails,
  startChild,
  upsertSearchAttributes,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities, HeavyActivities } from '../activities/index.ts';
import type { StartRunResult } from '../exports/runs/start-run.ts';
import type { ContinuedRun, ExportRunInput, ExportRunResult, NoticeInput } from '../exports/temporal.ts';
import { fenced, rangeText } from './details.ts';
import { backfillsQueue, EXPORT_KIND, exportsQueue, NOTICE, RUN_FAILED, searchAttributes } from './names.ts';
import { type PlaceQueue, queueForPlace } from './place.ts';

const scheduledFor = defineSearchAttributeKey('TemporalScheduledStartTime', 'DATETIME');

/** The time without a heartbeat after which an attempt is lost: five times the pause between two heartbeats. */
const SILENCE = '15 seconds';
/** There is no last attempt: a run that may succeed later is retried until it succeeds or somebody cancels it. */
const retry = { initialInterval: '1 second', backoffCoefficient: 2 } as const;
const { startExportRun, finishExportRun } = proxyActivities<Activities>({
  // Each takes a few statements. If a worker hangs, this is how long it delays the run.
  startToCloseTimeout: '30 seconds',
  retry: { ...retry, maximumInterval: '1 minute' },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

type Started = Extract<StartRunResult, { outcome: 'started' }>;

/** What is known about a run in progress. */
interface Progress {
  started?: Started;
}

/**
 * Exports one interval of a batch export, and retries what fails. If the run fails or is cancelled, so is its workflow.
 * Temporal's own lists and alerts therefore show both.
 */
export async function exportRun(input: ExportRunInput): Promise<ExportRunResult> {
  const progress: Progress = {};
  const queue = queueForPlace(input.from?.inVain);
  try {
    return await exportOne(input, progress, queue);
  } catch (error) {
    // It has no activity in progress and stands in the queue for a place. It asks again, in case it was told meanwhile.
    if (error instanceof HistoryIsLong)
      return continueAsNew<typeof exportRun>({ ...input, from: error.from });
    if (!isCancellation(error) && !(error instanceof ActivityFailure)) throw error;
    return CancellationScope.nonCancellable(() => finish(input, progress, error));
  }
}

async function exportOne(
  input: ExportRunInput,
  progress: Progress,
  queue: PlaceQueue,
): Promise<ExportRunResult> {
  const { from } = input;
  const started = from ? ({ outcome: 'started', ...from } as const) : await begin(input);
  if (started.outcome === 'nothing') {
    setCurrentDetails(`Nothing to do: ${started.reason}.`);
    return { runId: started.runId, status: started.status, records: started.records };
  }
  progress.started = started;
  const { runId, what, interval, attemptMilliseconds } = started;
  if (!from) {
    upsertSearchAttributes([
      { key: searchAttributes.intervalEnd, value: new Date(interval.end) },
      { key: searchAttributes.runStatus, value: 'Running' },
    ]);
  }
  const workflowRunId = firstRunIdOf(input);
  const attempt = () => {
    setCurrentDetails(`**Running** ${headline(started)}\n\n${nameOf(runId)}`);
    const { workflowId } = workflowInfo();
    return heavy(input, started).exportInterval({ exportId: input.exportId, runId, workflowId });
  };
  const result = await queue.inTurn(attempt, (since, { waits, inVain }) => {
    setCurrentDetails(`**Waiting for a place** since ${since}: ${headline(started)}\n\n${nameOf(runId)}`);
    const isLong = waits >= (input.waitsPerHistory ?? Number.POSITIVE_INFINITY);
    if (!isLong && !workflowInfo().continueAsNewSuggested) return;
    // A new history would not know of the cancellation.
    if (CancellationScope.current().consideredCancelled) return;
    throw new HistoryIsLong({ workflowRunId, runId, interval, what, attemptMilliseconds, inVain });
  });
  const { status, records, rejected, bytes, error } = result;
  upsertSearchAttributes([{ key: searchAttributes.runStatus, value: status }]);
  const left = rejected > 0 ? `, ${rejected} rows left out` : '';
  setCurrentDetails(
    `**${status}** ${headline(started)}${error === null ? '' : fenced(error)}\n\n${records} rows, ${bytes} bytes${left}, ${nameOf(runId)}`,
  );
  for (const notice of result.notices ?? []) await tell(notice);
  return { runId, status, records };
}

async function begin(input: ExportRunInput): Promise<StartRunResult> {
  const info = workflowInfo();
  const nominal = info.typedSearchAttributes.get(scheduledFor) ?? info.startTime;
  return startExportRun({
    exportId: input.exportId,
    interval: input.interval ?? null,
    backfillId: input.backfillId ?? null,
    nominal: nominal.toISOString(),
    workflowId: info.workflowId,
    workflowRunId: info.runId,
  });
}

/** The run id of the workflow with which the run began. Its row is known by it. */
const firstRunIdOf = ({ from }: ExportRunInput): string => from?.workflowRunId ?? workflowInfo().runId;

/** The workflow has waited so often that it goes on with a new history. */
class HistoryIsLong extends Error {
  readonly from: ContinuedRun;

  constructor(from: ContinuedRun) {
    super('The history is long');
    this.from = from;
  }
}

const headline = ({ what, interval }: Started) => `${what}, ${rangeText(interval)}`;
const nameOf = (runId: string | null) => `run \`${runId}\``;

function heavy({ backfillId }: ExportRunInput, started: Started): HeavyActivities {
  const queueOf = backfillId === undefined ? exportsQueue : backfillsQueue;
  return proxyActivities<HeavyActivities>({
    taskQueue: queueOf(workflowInfo().taskQueue),
    startToCloseTimeout: started.attemptMilliseconds,
    heartbeatTimeout: SILENCE,
    // An attempt that fails says when the next one begins. These pauses apply after an attempt whose worker is gone.
    retry: { ...retry, maximumInterval: '30 seconds' },
    // The run counts as cancelled only after its upload is removed.
    cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
    summary: `Export ${started.what}`,
  });
}

/** Writes down how a run ended that did not complete, and sends the notices about it. */
async function finish(
  input: ExportRunInput,
  { started }: Progress,
  error: unknown,
): Promise<ExportRunResult> {
  const status = isCancellation(error) ? 'Cancelled' : 'Failed';
  const reason = status === 'Failed' ? reasonOf(error) : null;
  const done = await finishExportRun({
    exportId: input.exportId,
    workflowRunId: firstRunIdOf(input),
    status,
    error: reason,
  });
  upsertSearchAttributes([{ key: searchAttributes.runStatus, value: done.status }]);
  const what = started ? ` ${headline(started)}` : '';
  const why = reason === null ? '' : fenced(reason);
  setCurrentDetails(`**${done.status}**${what}${why}\n\n${nameOf(done.runId)}`);
  for (const notice of done.notices) await tell(notice);
  // Histories of an older version contain this patch.
  deprecatePatch('ends-as-its-run');
  if (done.status === 'Failed' && reason !== null) throw ApplicationFailure.nonRetryable(reason, RUN_FAILED);
  if (done.status === 'Cancelled' && isCancellation(error)) throw error;
  return { runId: done.runId, status: done.status, records: done.records };
}

function reasonOf(error: unknown): string {
  let at = error as Error;
  while (at.cause instanceof Error && !(at instanceof CancelledFailure)) at = at.cause;
  return at.message;
}

/** Starts a notice. It is a workflow of its own, so that no run waits for a webhook or fails because of one. */
async function tell(notice: NoticeInput): Promise<void> {
  const { workflowId, runId } = workflowInfo();
  try {
    await startChild(NOTICE, {
      workflowId: `${workflowId}-${notice.event}-${runId}`,
      args: [notice],
      parentClosePolicy: ParentClosePolicy.ABANDON,
      typedSearchAttributes: [
        { key: searchAttributes.kind, value: EXPORT_KIND },
        { key: searchAttributes.project, value: notice.projectId },
        { key: searchAttributes.export, value: notice.exportId },
      ],
      staticSummary: `Tell of ${notice.event}`,
    });
  } catch (error) {
    log.warn('a notice was not sent', { event: notice.event, error });
  }
}
