// What functions need from Temporal, without any of Temporal's types. `schedules/functions` implements it. The inputs and
// results of the workflows are here too: ids, times and counts only.
import type { ReplayNames, ReplayRow } from './rows/replays.ts';
import type { Hold, ReplayKind, ReplayStatus } from './rules/replay.ts';

/** A replay or broadcast, as its workflow names it. */
export interface ReplayReference {
  projectId: number;
  replayId: string;
}

/** The input of the workflows of replays and broadcasts. All else is in the row. */
export interface FunctionReplayInput extends ReplayReference {
  /** Set when the workflow continues with a new history. */
  isBegun?: boolean;
  /** How often it has asked in vain whether it may go on. */
  inVain?: number;
  /** How many pages fit into one history. By default Temporal suggests when to begin a new one. */
  pagesPerHistory?: number;
}

/** A replay whose workflow hears of it. The names are for people who look at the workflow. */
export type StirredReplay = Pick<ReplayRow, 'project_id' | 'id' | 'function_id' | 'kind' | 'dry_run'> &
  ReplayNames;

/** How far a replay is. */
export interface ReplayProgress {
  status: ReplayStatus;
  reason: string | null;
  kind: ReplayKind;
  dryRun: boolean;
  held: Hold | null;
  /** Null: not known. */
  total: number | null;
  scanned: number;
  matched: number;
  queued: number;
}

/** What one call of the activity that does pages came to. */
export interface ReplayReport extends ReplayProgress {
  /** In how many milliseconds the next call may follow, counted from the beginning of this one, because of the rate. */
  atLeast: number;
  /** How long to wait because something holds it up, in milliseconds. 0: nothing does. */
  wait: number;
}

/** A message about a function for the webhook of the operators. It contains ids and times only. */
export interface FunctionNotice {
  event: 'function.disabled' | 'function.behind';
  projectId: number;
  functionId: string;
  /** Since when. */
  at: string;
}

/** What Temporal does for functions. The rows are the truth. */
export interface FunctionTemporal {
  /** Answers whether Temporal answered the last call. */
  isReachable(): boolean;
  /** Runs `work`. Calls to Temporal within it fail after this time, also while Temporal is away. */
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
  /** Tells the workflow of a replay that its row has changed, and starts the workflow if none runs. */
  stir(replay: StirredReplay): Promise<void>;
  /** Sends a notice to the operators. Calls with the same `about` send it once. Answers whether this one does. */
  startNotice(notice: FunctionNotice, about: string): Promise<boolean>;
}
