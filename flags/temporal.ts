// What flags need from Temporal, without any of Temporal's types. `schedules/flags` implements it. The inputs and results of
// the workflows are here too: ids, times and counts only.

/** What a workflow carries out: a change at a time, or a rollout in steps. */
export type PlanKind = 'change' | 'rollout';

/** A plan, as its workflow names it. All else is in the row. */
export interface PlanReference {
  projectId: number;
  planId: string;
}

export interface Plan extends PlanReference {
  kind: PlanKind;
  flagId: number;
}

/** What a look at a plan came to. */
export interface PlanReport {
  status: string;
  isOver: boolean;
  /** In how many milliseconds there is something to do. Null: when its workflow is told. */
  wait: number | null;
  /** How many steps are taken, of how many. */
  done: number;
  of: number;
  /** The percentage that a rollout has reached. */
  percentage: number | null;
}

/** What Temporal does for flags. The rows are the truth. */
export interface FlagTemporal {
  /** Answers whether Temporal answered the last call. */
  isReachable(): boolean;
  /** Runs `work`. Calls to Temporal within it fail after this time, also while Temporal is away. */
  within<T>(milliseconds: number, work: () => Promise<T>): Promise<T>;
  /** Tells the workflow of a plan that its row has changed, and starts the workflow if none runs. */
  stir(plan: Plan): Promise<void>;
}
