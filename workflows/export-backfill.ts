import {
  ActivityCancellationType,
  CancellationScope,
  CancelledFailure,
  ChildWorkflowCancellationType,
  continueAsNew,
  executeChild,
  isCancellation,
  ParentClosePolicy,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type {
  BackfillProgressNote,
  ExportBackfillInput,
  ExportRunInput,
  ExportRunResult,
} from '../exports/temporal.ts';
import type { IntervalText } from '../intervals/index.ts';
import { rangeText } from './details.ts';
import { EXPORT_KIND, EXPORT_RUN, searchAttributes } from './names.ts';

/** How many intervals are exported at once. */
const AT_ONCE = 3;
const PAGE = 50;
const CANCELLED = 'The backfill was cancelled';

const retry = { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' } as const;
const { sizeBackfill } = proxyActivities<Activities>({
  startToCloseTimeout: '10 minutes',
  heartbeatTimeout: '1 minute',
  retry,
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});
const { listBackfillIntervals, finishBackfill } = proxyActivities<Activities>({
  startToCloseTimeout: '1 minute',
  retry,
});

export interface ExportBackfillResult {
  status: string;
  total: number;
  completed: number;
  failed: number;
  cancelled: number;
}

/** Exports the intervals of a range, a few at a time. An interval that fails does not stop the others. */
export async function exportBackfill(input: ExportBackfillInput): Promise<ExportBackfillResult> {
  const progress: BackfillProgressNote = { ...(input.from ?? NOTHING) };
  try {
    if (!input.from) {
      const size = await sizeBackfill({ exportId: input.exportId, backfillId: input.backfillId });
      if (!size) return { ...counts(progress), status: 'Cancelled' };
      progress.total = size.total;
    }
    const whole = await exportAll(input, progress);
    if (CancellationScope.current().consideredCancelled) throw new CancelledFailure(CANCELLED);
    if (!whole) return await continueAsNew<typeof exportBackfill>({ ...input, from: progress });
    // A range without an end may have more intervals by now than when they were counted.
    const isWhole = progress.failed + progress.cancelled === 0 && progress.completed >= progress.total;
    const status = isWhole ? 'Completed' : 'Failed';
    return await finish(input, progress, status);
  } catch (error) {
    if (!isCancellation(error)) throw error;
    await CancellationScope.nonCancellable(() => finish(input, progress, 'Cancelled'));
    throw error;
  }
}

const NOTHING: BackfillProgressNote = { after: null, total: 0, completed: 0, failed: 0, cancelled: 0 };

/** Exports all intervals. Returns false if it stopped early because the history is long. No run is in progress then. */
async function exportAll(input: ExportBackfillInput, progress: BackfillProgressNote): Promise<boolean> {
  const running = new Set<Promise<void>>();
  const scope = CancellationScope.current();
  let begun = 0;
  try {
    for (;;) {
      const { intervals, skipped, last } = await listBackfillIntervals({
        exportId: input.exportId,
        backfillId: input.backfillId,
        after: progress.after,
        limit: PAGE,
      });
      progress.completed += skipped;
      for (const { done, ...interval } of intervals) {
        if (done) {
          progress.completed += 1;
          progress.after = interval.end;
          continue;
        }
        while (running.size >= AT_ONCE) await Promise.race(running);
        if (scope.consideredCancelled) throw new CancelledFailure(CANCELLED);
        const child: Promise<void> = exportOne(input, interval, progress, scope).finally(() => {
          running.delete(child);
        });
        running.add(child);
        progress.after = interval.end;
        begun += 1;
        if (begun >= (input.runsPerHistory ?? Number.POSITIVE_INFINITY)) return false;
        if (workflowInfo().continueAsNewSuggested) return false;
      }
      if (last === null) return true;
      progress.after = last;
    }
  } finally {
    // Also after a cancellation: the backfill ends after its runs, which first remove what they were about to publish.
    await Promise.all(running);
  }
}

async function exportOne(
  { exportId, backfillId }: ExportBackfillInput,
  interval: IntervalText,
  progress: BackfillProgressNote,
  scope: CancellationScope,
): Promise<void> {
  const run: ExportRunInput = { exportId, interval, backfillId };
  const info = workflowInfo();
  const inherited = info.typedSearchAttributes.getAll().filter((one) => INHERITED.has(one.key.name));
  try {
    const { status }: ExportRunResult = await executeChild(EXPORT_RUN, {
      workflowId: `${exportId}-${interval.end}-${backfillId}`,
      args: [run],
      cancellationType: ChildWorkflowCancellationType.WAIT_CANCELLATION_COMPLETED,
      // If somebody terminates the backfill, its runs are cancelled, so that they remove what they have uploaded.
      parentClosePolicy: ParentClosePolicy.REQUEST_CANCEL,
      typedSearchAttributes: [
        ...inherited,
        { key: searchAttributes.kind, value: EXPORT_KIND },
        { key: searchAttributes.intervalEnd, value: new Date(interval.end) },
      ],
      staticSummary: rangeText(interval),
    });
    if (status === 'Completed') progress.completed += 1;
    else if (status === 'Cancelled') progress.cancelled += 1;
    else progress.failed += 1;
  } catch (error) {
    if (isCancellation(error)) progress.cancelled += 1;
    else progress.failed += 1;
  }
  if (!scope.consideredCancelled) setCurrentDetails(textOf(progress));
}

const INHERITED: ReadonlySet<string> = new Set([
  searchAttributes.project.name,
  searchAttributes.export.name,
  searchAttributes.destination.name,
]);

const counts = ({ total, completed, failed, cancelled }: BackfillProgressNote) => ({
  total,
  completed,
  failed,
  cancelled,
});

function textOf({ total, completed, failed, cancelled }: BackfillProgressNote): string {
  const rest = [
    ...(failed > 0 ? [`${failed} failed`] : []),
    ...(cancelled > 0 ? [`${cancelled} cancelled`] : []),
  ];
  return `${completed} of ${total} intervals completed${rest.length > 0 ? `; ${rest.join(', ')}` : ''}`;
}

async function finish(
  { exportId, backfillId }: ExportBackfillInput,
  progress: BackfillProgressNote,
  status: 'Completed' | 'Failed' | 'Cancelled',
): Promise<ExportBackfillResult> {
  const ended = await finishBackfill({ exportId, backfillId, status, text: textOf(progress) });
  setCurrentDetails(`**${ended}** ${textOf(progress)}`);
  return { ...counts(progress), status: ended };
}
