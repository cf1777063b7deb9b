// The steps of plans for flags. Their workflows call them again and again; each can be repeated at any point.
import { type Pool, type Transaction, transaction } from '../../db/pool.ts';
import { Refusal } from '../../refusals.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Work } from '../../tenancy/product.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { changeFlagIn, type FlagChange } from '../commands/change.ts';
import type { FlagCommandDependencies } from '../commands/dependencies.ts';
import { actorFor } from '../plan-actor.ts';
import { type FlagKey, findFlag, lockFlags } from '../rows/flags.ts';
import { markTold } from '../rows/plans.ts';
import {
  advanceRollout,
  endRollout,
  findRollout,
  type LockedRollout,
  lockRollout,
  neglectedRollouts,
  pauseRollout,
} from '../rows/rollouts.ts';
import {
  countDueChanges,
  type DueChange,
  finishScheduledChange,
  firstDueChanges,
  lockScheduledChange,
  neglectedChanges,
  readDueChange,
  type ScheduledChangeKey,
} from '../rows/scheduled-changes.ts';
import {
  ENDINGS,
  findCondition,
  percentageIn,
  percentageOf,
  type RolloutPlan,
  stepAt,
  timeOfStep,
  withoutPercentage,
} from '../rules/rollouts.ts';
import { type ChangePayload, changeOfPayload, EXPECTED } from '../rules/scheduled-changes.ts';
import type { FlagTemporal, Plan, PlanReference, PlanReport } from '../temporal.ts';

export interface PlanRunDependencies extends FlagCommandDependencies {
  temporal: FlagTemporal;
  logger: Pick<Logger, 'info'>;
}

const LONGEST_REASON = 1_000;
const NO_FLAG = 'The flag was deleted.';
const over = (status: string, report: Partial<PlanReport> = {}): PlanReport => ({
  ...{ status, isOver: true, wait: null, done: 0, of: 1, percentage: null },
  ...report,
});

/** Changes a flag inside of a transaction. A refusal takes back only what the change itself did. */
async function tryChange(client: Transaction, change: () => Promise<unknown>): Promise<Refusal | undefined> {
  await client.query('savepoint before_change');
  try {
    await change();
    await client.query('release savepoint before_change');
    return undefined;
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    await client.query('rollback to savepoint before_change');
    return error;
  }
}

/** For so long somebody who has carried out a change goes on with others that are due, in milliseconds. */
const ROUND = 2_000;
/** So long a change takes, about, and so long it is waited for at least and at most. */
const USUAL = 20;
const [SHORTEST, LONGEST] = [300, 10_000];

/** Whose flags are being changed by this process, because of plans, and whether somebody goes through what is due. */
interface Busy {
  projects: Set<number>;
  isGoingThrough: boolean;
}
const busyBy = new WeakMap<Pool, Busy>();

function busyOf(pool: Pool): Busy {
  const busy = busyBy.get(pool) ?? { projects: new Set(), isGoingThrough: false };
  busyBy.set(pool, busy);
  return busy;
}

/**
 * Does something with the flags of a project if nobody here is at it. They would wait for each other's lock, and whoever waits
 * has a place of the worker and a connection that other projects need. Undefined: somebody is.
 */
async function ifFree<T>(pool: Pool, projectId: number, work: () => Promise<T>): Promise<T | undefined> {
  const { projects } = busyOf(pool);
  if (projects.has(projectId)) return undefined;
  projects.add(projectId);
  try {
    return await work();
  } finally {
    projects.delete(projectId);
  }
}

/** How long to wait while others are before. What waits together does not come back together. */
const waitBehind = (ahead: number) =>
  Math.ceil(Math.min(LONGEST, SHORTEST + ahead * USUAL) * (0.5 + Math.random() / 2));

/** Says how it stands with a change. Undefined: it is due. */
function reportOf(row: DueChange | undefined): PlanReport | undefined {
  if (!row) return over('deleted');
  if (row.is_over) return over(row.failed ? 'failed' : 'completed', { done: 1 });
  return row.wait > 0 ? { ...over('planned'), isOver: false, wait: row.wait } : undefined;
}

/**
 * Carries a scheduled change out if its time has come. Whoever is at it goes on with what else is due, one change of each project
 * at a time. So however many changes of a project are due at once, and in whatever order Temporal asks for them, those of
 * others do not wait for them.
 */
export async function carryOutChange(
  deps: PlanRunDependencies,
  { projectId, planId }: PlanReference,
): Promise<PlanReport> {
  const { pool } = deps;
  const key = { projectId, changeId: Number(planId) };
  const known = reportOf(await readDueChange(pool, key));
  if (known) return known;
  const report = await ifFree(pool, projectId, () => carryOutOne(deps, key));
  if (!report) {
    const ahead = await countDueChanges(pool, projectId);
    return { ...over('planned'), isOver: false, wait: waitBehind(ahead) };
  }
  const busy = busyOf(pool);
  if (!busy.isGoingThrough) {
    busy.isGoingThrough = true;
    // What fails here is tried again in its own turn.
    await goThrough(deps, Date.now() + ROUND)
      .catch((error) =>
        deps.logger.info({ err: error }, 'changes of flags that are due were left to their own workflows'),
      )
      .finally(() => {
        busy.isGoingThrough = false;
      });
  }
  return report;
}

/** Carries out changes that are due, one of each project at a time, until none is left or the time is over. */
async function goThrough(deps: PlanRunDependencies, end: number): Promise<void> {
  const { projects } = busyOf(deps.pool);
  for (;;) {
    const due = await firstDueChanges(deps.pool, { without: [...projects], limit: AT_ONCE });
    if (due.length === 0) return;
    for (const key of due) {
      if (Date.now() >= end) return;
      await ifFree(deps.pool, key.projectId, () => carryOutOne(deps, key));
    }
  }
}

/**
 * Carries a change out, if it still is to be. The change of the flag and the note that it was tried are one transaction, so it is
 * never carried out twice. The flags are locked before the plan, as by whoever deletes a flag: in another order, the two would
 * wait for each other.
 */
const carryOutOne = (deps: PlanRunDependencies, key: ScheduledChangeKey): Promise<PlanReport> =>
  transaction(deps.pool, async (client) => {
    await lockFlags(client, key.projectId);
    const row = await lockScheduledChange(client, key);
    const known = reportOf(row);
    if (known || !row) return known ?? over('deleted');
    const refusal = await tryChange(client, () => applyPayload(client, deps, key, row));
    const reason = refusal?.kind === 'absent' ? NO_FLAG : refusal?.message;
    await finishScheduledChange(client, key, reason?.slice(0, LONGEST_REASON) ?? null);
    return over(refusal ? 'failed' : 'completed', { done: 1 });
  });

async function applyPayload(
  client: Transaction,
  deps: PlanRunDependencies,
  { projectId, changeId }: { projectId: number; changeId: number },
  row: DueChange,
): Promise<void> {
  const flag: FlagKey = { projectId, flagId: row.flag_id };
  const before = await findFlag(client, flag);
  if (!before || before.deleted) throw new Refusal('absent', NO_FLAG);
  const payload = parseExactJson(row.payload) as ChangePayload;
  const filters = parseExactJson(before.filters) as Record<string, unknown>;
  const change: FlagChange | undefined = changeOfPayload(payload, filters);
  if (!change) throw new Refusal('invalid', `The value must be ${EXPECTED[payload.operation]}.`);
  const about = { trigger: { job_type: 'scheduled_change', job_id: String(changeId) } };
  await changeFlagIn(client, deps, actorFor(row), flag, change, about);
}

const planOf = (row: LockedRollout): RolloutPlan => ({
  ...{ from: row.from_percentage, to: row.to_percentage, steps: row.steps },
  ...{ startsAt: Date.parse(row.starts_at), endsAt: Date.parse(row.ends_at) },
});

/** Takes the step of a rollout that is due, if one is. Steps whose time has passed meanwhile are left out. */
export async function stepRollout(
  deps: PlanRunDependencies,
  { projectId, planId }: PlanReference,
): Promise<PlanReport> {
  const key = { projectId, rolloutId: planId };
  const report = await ifFree(deps.pool, projectId, () => stepOne(deps, key));
  return report ?? { ...over('running'), isOver: false, wait: waitBehind(0), of: 0 };
}

/** Takes a step. The flags are locked before the plan, see above. */
function stepOne(
  deps: PlanRunDependencies,
  key: { projectId: number; rolloutId: string },
): Promise<PlanReport> {
  return transaction(deps.pool, async (client) => {
    await lockFlags(client, key.projectId);
    const row = await lockRollout(client, key);
    if (!row) return over('deleted');
    const { percentage, steps: of } = row;
    const done = row.step ?? 0;
    if (row.status === 'paused') {
      return { ...over('paused'), isOver: false, done, of, percentage };
    }
    if (row.status !== 'running') return over(row.status, { done, of, percentage });
    const plan = planOf(row);
    const step = stepAt(plan, row.now);
    if (step <= (row.step ?? -1)) {
      const wait = Math.max(1, timeOfStep(plan, (row.step ?? -1) + 1) - row.now);
      return { ...over('running'), isOver: false, wait, done, of, percentage };
    }
    return takeStep(client, deps, row, plan, step);
  });
}

async function takeStep(
  client: Transaction,
  deps: PlanRunDependencies,
  row: LockedRollout,
  plan: RolloutPlan,
  step: number,
): Promise<PlanReport> {
  const { project_id: projectId, flag_id: flagId, steps: of } = row;
  const key = { projectId, rolloutId: row.id };
  const done = row.step ?? 0;
  const end = async (reason: string, status: 'cancelled' | 'ended' = 'ended') => {
    await endRollout(client, key, { status, reason });
    return over(status, { done, of, percentage: row.percentage });
  };
  const flag = await findFlag(client, { projectId, flagId });
  if (!flag || flag.deleted) return end(ENDINGS.deleted, 'cancelled');
  if (!flag.active) {
    await pauseRollout(client, key, ENDINGS.disabled);
    return { ...over('paused'), isOver: false, done, of, percentage: row.percentage };
  }
  const plain = groupsOf(JSON.parse(flag.filters));
  let condition: Record<string, unknown> = JSON.parse(row.condition);
  const place = findCondition(plain, row.condition_index, condition);
  if (place === undefined) return end(ENDINGS.removed);
  const now = percentageIn(plain[place] as Record<string, unknown>);
  if (now !== row.percentage) return end(ENDINGS.edited(now, row.percentage));
  const percentage = percentageOf(plan, step);
  if (percentage !== now) {
    const groups = groupsOf(parseExactJson(flag.filters)).map((one, index) =>
      index === place ? { ...one, rollout_percentage: percentage } : one,
    );
    const actor = actorFor({ created_by: row.planner, key_id: row.key_id });
    const about = { trigger: { job_type: 'rollout', job_id: row.id }, rollout: { step, of } };
    const change = { filters: { groups } };
    const refusal = await tryChange(client, async () => {
      const after = await changeFlagIn(client, deps, actor, { projectId, flagId }, change, about);
      // Saving a flag may write what it left open.
      condition = withoutPercentage(groupsOf(JSON.parse(after.filters))[place] ?? {});
    });
    if (refusal) return end(refusal.message.slice(0, LONGEST_REASON));
  }
  const isLast = step >= of;
  const dueAt = isLast ? null : timeOfStep(plan, step + 1);
  await advanceRollout(client, key, {
    ...{ step, percentage, conditionIndex: place, condition: JSON.stringify(condition) },
    dueAt: dueAt === null ? null : new Date(dueAt).toISOString(),
  });
  if (dueAt === null) return over('completed', { done: step, of, percentage });
  const wait = Math.max(1, dueAt - row.now);
  return { ...over('running'), isOver: false, wait, done: step, of, percentage };
}

const groupsOf = (filters: unknown): Record<string, unknown>[] =>
  (filters as { groups?: Record<string, unknown>[] }).groups ?? [];

const IN_TEMPORAL = 'Its workflow was cancelled in Temporal.';

/** Gives a scheduled change up whose workflow was cancelled. */
export async function endChange(
  { pool }: { pool: Pool },
  { projectId, planId }: PlanReference,
): Promise<void> {
  await finishScheduledChange(pool, { projectId, changeId: Number(planId) }, IN_TEMPORAL);
}

/** Cancels a rollout whose workflow was cancelled. */
export async function cancelRollout(
  { pool }: { pool: Pool },
  { projectId, planId }: PlanReference,
): Promise<void> {
  const key = { projectId, rolloutId: planId };
  if (await findRollout(pool, key)) {
    await endRollout(pool, key, { status: 'cancelled', reason: IN_TEMPORAL });
  }
}

/** A plan that is late by so many seconds has lost its workflow. */
const LATE = 30;
const AT_ONCE = 200;

/** Starts the workflows of plans of which Temporal has not heard, or that are late. */
export async function mendPlans(
  { pool, temporal, logger }: PlanRunDependencies,
  { signal, beat }: Work,
): Promise<number> {
  const limits = { seconds: LATE, limit: AT_ONCE };
  const changes = await neglectedChanges(pool, limits);
  const rollouts = await neglectedRollouts(pool, limits);
  const plans: Plan[] = [
    ...changes.map((one) => ({ ...one, kind: 'change' as const, id: String(one.id) })),
    ...rollouts.map((one) => ({ ...one, kind: 'rollout' as const })),
  ].map(({ kind, project_id, id, flag_id }) => ({
    ...{ kind, projectId: project_id, planId: id, flagId: flag_id },
  }));
  for (const plan of plans) {
    signal.throwIfAborted();
    beat();
    await temporal.stir(plan);
    await markTold(pool, plan);
  }
  if (plans.length > 0) logger.info({ plans: plans.length }, 'plans for flags were stirred');
  return plans.length;
}
