import {
  condition,
  continueAsNew,
  defineSignal,
  isCancellation,
  setCurrentDetails,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import { fenced } from './details.ts';
import { showDispatch, showRetries } from './function-backlog.ts';
import { maintainOnce } from './maintenance.ts';
import { UPKEEP_NOW } from './names.ts';
import { reconcileOnce } from './reconcile-exports.ts';

export interface UpkeepInput {
  of: keyof typeof ROUNDS;
  /** Settings for tests. By default, the time is that of the work, and Temporal suggests when to begin a new history. */
  everyMilliseconds?: number;
  roundsPerHistory?: number;
}

const MINUTE = 60_000;

/** What the installation does again and again, and how often. Each has a workflow of its own, which never ends. */
const ROUNDS = {
  maintenance: { every: MINUTE, round: (tell: Tell) => maintainOnce({}, tell) },
  reconciliation: { every: 5 * MINUTE, round: reconcileOnce },
  dispatch: { every: MINUTE, round: showDispatch },
  retries: { every: MINUTE, round: showRetries },
} as const;
type Tell = (text: string) => void;

const now = defineSignal(UPKEEP_NOW);
const timeText = (milliseconds: number) => new Date(milliseconds).toISOString().replace(/\.\d+Z$/, 'Z');

/**
 * Does one kind of upkeep for ever, in rounds. A round that fails is shown, and the next one tries again. After many rounds it
 * goes on with a new history.
 */
export async function upkeep(input: UpkeepInput): Promise<void> {
  const { every, round } = ROUNDS[input.of];
  const pause = input.everyMilliseconds ?? every;
  let isWanted = false;
  setHandler(now, () => {
    isWanted = true;
  });
  let last = '';
  for (let rounds = 1; ; rounds += 1) {
    isWanted = false;
    const began = Date.now();
    const since = timeText(began);
    setCurrentDetails(`**Working** since ${since}${last}`);
    try {
      await round((text) => {
        last = `\n\n${text}`;
        setCurrentDetails(`**Working** since ${since}${last}`);
      });
      setCurrentDetails(`**Done** at ${timeText(Date.now())}, in ${seconds(began)} s${last}`);
    } catch (error) {
      if (isCancellation(error)) throw error;
      last = `\n\nThe round that began at ${since} **failed**:${fenced(reasonOf(error))}`;
      setCurrentDetails(`**Failed** at ${timeText(Date.now())}; the next round tries again${last}`);
    }
    await condition(() => isWanted, Math.max(1, began + pause - Date.now()));
    const isLong = rounds >= (input.roundsPerHistory ?? Number.POSITIVE_INFINITY);
    // Whoever wants a round now gets one: the new history begins with it.
    if (isLong || workflowInfo().continueAsNewSuggested) return continueAsNew<typeof upkeep>(input);
  }
}

const seconds = (since: number) => Math.round((Date.now() - since) / 100) / 10;

function reasonOf(error: unknown): string {
  let at = error as Error;
  while (at.cause instanceof Error) at = at.cause;
  return at.message;
}
