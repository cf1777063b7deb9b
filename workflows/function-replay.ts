import {
  ActivityFailure,
  ApplicationFailure,
  CancellationScope,
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  proxyActivities,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { FunctionReplayInput, ReplayProgress } from '../functions/temporal.ts';
import { fenced } from './details.ts';
import { REPLAY_CHANGED } from './names.ts';

const retry = { initialInterval: '1 second', backoffCoefficient: 2, maximumInterval: '1 minute' } as const;
const { beginReplay, replayPages } = proxyActivities<Activities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '30 seconds',
  retry,
});
const { endReplay } = proxyActivities<Activities>({ startToCloseTimeout: '1 minute', retry });

const MINUTE = 60_000;
/**
 * How long a paused one waits before it asks by itself. It is told when it may go on, so this matters only if the message is
 * lost. The waits grow, so that the history does not.
 */
const FIRST_WAIT = 10 * MINUTE;
const LONGEST_WAIT = 12 * 60 * MINUTE;

export interface FunctionReplayResult {
  status: string;
  scanned: number;
  matched: number;
  queued: number;
}

/** Runs a function for past events. */
export const functionReplay = (input: FunctionReplayInput): Promise<FunctionReplayResult> =>
  carryOut(input, (next) => continueAsNew<typeof functionReplay>(next));

/** Runs a function for persons. */
export const functionBroadcast = (input: FunctionReplayInput): Promise<FunctionReplayResult> =>
  carryOut(input, (next) => continueAsNew<typeof functionBroadcast>(next));

/** Runs a function again for its invocations that have ended. */
export const functionRerun = (input: FunctionReplayInput): Promise<FunctionReplayResult> =>
  carryOut(input, (next) => continueAsNew<typeof functionRerun>(next));

/** Does page after page, as the row says. The row knows how far it is, so this can begin anew at any point. */
async function carryOut(
  input: FunctionReplayInput,
  goOn: (next: FunctionReplayInput) => Promise<never>,
): Promise<FunctionReplayResult> {
  const { projectId, replayId, pagesPerHistory = Number.POSITIVE_INFINITY } = input;
  const reference = { projectId, replayId };
  let isTold = false;
  setHandler(defineSignal(REPLAY_CHANGED), () => {
    isTold = true;
  });
  try {
    if (!input.isBegun) await beginReplay(reference);
    let inVain = input.inVain ?? 0;
    for (let calls = 1; ; calls += 1) {
      isTold = false;
      const began = Date.now();
      const report = await replayPages(reference);
      if (report.status !== 'running' && report.status !== 'paused') return ended(report);
      setCurrentDetails(textOf(report));
      if (report.status === 'paused' || report.wait > 0) {
        const longest = report.wait || Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** inVain);
        inVain = (await condition(() => isTold, longest)) ? 0 : inVain + 1;
      } else {
        inVain = 0;
        const rest = report.atLeast - (Date.now() - began);
        if (rest > 0) await condition(() => isTold, rest);
      }
      if (calls >= pagesPerHistory || workflowInfo().continueAsNewSuggested)
        return await goOn({ ...input, isBegun: true, inVain });
    }
  } catch (error) {
    if (isCancellation(error)) {
      const reason = 'Its workflow was cancelled in Temporal.';
      await CancellationScope.nonCancellable(async () => {
        ended(await endReplay({ ...reference, status: 'cancelled', reason }));
      });
      throw error;
    }
    if (!(error instanceof ActivityFailure)) throw error;
    const reason = error.cause instanceof ApplicationFailure ? error.cause.message : error.message;
    return ended(await endReplay({ ...reference, status: 'failed', reason }));
  }
}

function ended(progress: ReplayProgress): FunctionReplayResult {
  setCurrentDetails(textOf(progress));
  const { status, scanned, matched, queued } = progress;
  return { status, scanned, matched, queued };
}

const HELD = {
  queue: 'Waits until fewer invocations of the function wait.',
  watcher: 'Waits until the function is no longer disabled because of its cost.',
} as const;

const WHAT = { replay: 'events', broadcast: 'persons', rerun: 'ended invocations' } as const;

function textOf(progress: ReplayProgress): string {
  const { status, reason, kind, dryRun, held, total, scanned, matched, queued } = progress;
  const of = total === null ? '' : ` of ${total}`;
  const counts = `${scanned}${of} ${WHAT[kind]} looked at; ${matched} match; ${queued} invocations ${dryRun ? 'counted' : 'queued'}.`;
  return [
    `**${status}** ${counts}`,
    ...(held === null ? [] : [` ${HELD[held]}`]),
    ...(reason === null ? [] : [fenced(reason)]),
  ].join('');
}
