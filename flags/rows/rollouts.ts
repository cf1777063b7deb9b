import type { Queryable, Transaction } from '../../db/pool.ts';
import { type ShownUser, shownUser } from '../../db/users.ts';
import type { RolloutStatus } from '../rules/rollouts.ts';

export interface RolloutRow {
  project_id: number;
  id: string;
  flag_id: number;
  condition_index: number;
  /** The condition set without its percentage, as JSON. */
  condition: string;
  from_percentage: number;
  to_percentage: number;
  steps: number;
  starts_at: string;
  ends_at: string;
  status: RolloutStatus;
  reason: string | null;
  step: number | null;
  /** What the condition set has if nobody has changed it by hand. */
  percentage: number;
  due_at: string | null;
  paused_at: string | null;
  created_by: ShownUser | null;
  created_at: string;
  updated_at: string;
  finished_at: string | null;
}

export type ShownRollout = Omit<RolloutRow, 'condition'>;

export interface RolloutKey {
  projectId: number;
  rolloutId: string;
}

/** What is shown of a rollout. Its condition set may be long, and is in its flag. */
const SHOWN = `r.project_id, r.id, r.flag_id, r.condition_index, r.from_percentage, r.to_percentage,
  r.steps, r.starts_at, r.ends_at, r.status, r.reason, r.step, r.percentage, r.due_at, r.paused_at,
  r.created_at, r.updated_at, r.finished_at, ${shownUser('r.created_by')} as created_by`;
const COLUMNS = `${SHOWN}, r.condition::text as condition`;

export type NewRollout = Pick<
  RolloutRow,
  | 'project_id'
  | 'id'
  | 'flag_id'
  | 'condition_index'
  | 'condition'
  | 'from_percentage'
  | 'to_percentage'
  | 'steps'
  | 'starts_at'
  | 'ends_at'
  | 'percentage'
> & { created_by: number | null; key_id: string | null };

/** Plans a rollout. Undefined: the flag has one that is not over. */
export async function insertRollout(queryable: Queryable, row: NewRollout): Promise<RolloutRow | undefined> {
  const columns = [
    ...(['project_id', 'id', 'flag_id', 'condition_index', 'condition', 'from_percentage'] as const),
    ...(['to_percentage', 'steps', 'starts_at', 'ends_at', 'percentage', 'created_by', 'key_id'] as const),
  ];
  const { rows } = await queryable.query(
    `with r as (
       insert into feature_flag_rollouts (${columns.join(', ')}, due_at)
       values (${columns.map((_, index) => `$${index + 1}`).join(', ')}, $9)
       on conflict (project_id, flag_id) where status in ('running', 'paused') do nothing returning *)
     select ${COLUMNS} from r`,
    columns.map((column) => row[column]),
  );
  return rows[0];
}

export async function findRollout(
  queryable: Queryable,
  { projectId, rolloutId }: RolloutKey,
): Promise<RolloutRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from feature_flag_rollouts r where r.project_id = $1 and r.id = $2`,
    [projectId, rolloutId],
  );
  return rows[0];
}

/** Lists the rollouts of a flag, newest first. */
export async function listRollouts(
  queryable: Queryable,
  { projectId, flagId, limit, offset }: { projectId: number; flagId: number; limit: number; offset: number },
): Promise<{ count: number; rows: ShownRollout[] }> {
  const where = 'r.project_id = $1 and r.flag_id = $2';
  const counted = await queryable.query(
    `select count(*)::int as count from feature_flag_rollouts r where ${where}`,
    [projectId, flagId],
  );
  const { rows } = await queryable.query(
    `select ${SHOWN} from feature_flag_rollouts r where ${where}
     order by r.created_at desc, r.id desc limit $3 offset $4`,
    [projectId, flagId, limit, offset],
  );
  return { count: counted.rows[0].count, rows };
}

/** A rollout as whoever carries it out needs it. */
export interface LockedRollout extends RolloutRow {
  planner: number | null;
  key_id: string | null;
  /** The time of the database, in milliseconds. */
  now: number;
}

/** Locks a rollout until the transaction ends. */
export async function lockRollout(
  client: Transaction,
  { projectId, rolloutId }: RolloutKey,
): Promise<LockedRollout | undefined> {
  const { rows } = await client.query(
    `select ${COLUMNS}, r.created_by as planner, r.key_id,
       floor(extract(epoch from clock_timestamp()) * 1000)::float8 as now
     from feature_flag_rollouts r where r.project_id = $1 and r.id = $2 for update`,
    [projectId, rolloutId],
  );
  return rows[0];
}

/** Writes down that a step was taken. */
export async function advanceRollout(
  queryable: Queryable,
  { projectId, rolloutId }: RolloutKey,
  taken: {
    step: number;
    percentage: number;
    dueAt: string | null;
    conditionIndex: number;
    condition: string;
  },
): Promise<void> {
  await queryable.query(
    `update feature_flag_rollouts set step = $3, percentage = $4, due_at = $5, condition_index = $6, condition = $7,
       status = case when $5::timestamptz is null then 'completed' else status end,
       finished_at = case when $5::timestamptz is null then clock_timestamp() end, updated_at = clock_timestamp()
     where project_id = $1 and id = $2`,
    [projectId, rolloutId, taken.step, taken.percentage, taken.dueAt, taken.conditionIndex, taken.condition],
  );
}

/** Ends a rollout that is not over. Undefined: it is. */
export async function endRollout(
  queryable: Queryable,
  { projectId, rolloutId }: RolloutKey,
  { status, reason }: { status: 'cancelled' | 'ended'; reason: string },
): Promise<RolloutRow | undefined> {
  const { rows } = await queryable.query(
    `with r as (
       update feature_flag_rollouts set status = $3, reason = $4, due_at = null, paused_at = null, is_told = false,
         finished_at = clock_timestamp(), updated_at = clock_timestamp()
       where project_id = $1 and id = $2 and status in ('running', 'paused') returning *)
     select ${COLUMNS} from r`,
    [projectId, rolloutId, status, reason],
  );
  return rows[0];
}

/** Stops the clock of a rollout. Undefined: it does not run. */
export async function pauseRollout(
  queryable: Queryable,
  { projectId, rolloutId }: RolloutKey,
  reason: string | null,
): Promise<RolloutRow | undefined> {
  const { rows } = await queryable.query(
    `with r as (
       update feature_flag_rollouts set status = 'paused', reason = $3, paused_at = clock_timestamp(), due_at = null,
         is_told = false, updated_at = clock_timestamp()
       where project_id = $1 and id = $2 and status = 'running' returning *)
     select ${COLUMNS} from r`,
    [projectId, rolloutId, reason],
  );
  return rows[0];
}

/** Lets the clock of a rollout go on: what was ahead when it was paused is ahead now. Undefined: it is not paused. */
export async function resumeRollout(
  queryable: Queryable,
  { projectId, rolloutId }: RolloutKey,
): Promise<RolloutRow | undefined> {
  const { rows } = await queryable.query(
    `with r as (
       update feature_flag_rollouts set status = 'running', reason = null, paused_at = null, is_told = false,
         due_at = clock_timestamp(), updated_at = clock_timestamp(),
         starts_at = starts_at + (clock_timestamp() - paused_at), ends_at = ends_at + (clock_timestamp() - paused_at)
       where project_id = $1 and id = $2 and status = 'paused' returning *)
     select ${COLUMNS} from r`,
    [projectId, rolloutId],
  );
  return rows[0];
}

/** Lists rollouts of which Temporal has not heard, and those that are late. */
export async function neglectedRollouts(
  queryable: Queryable,
  { seconds, limit }: { seconds: number; limit: number },
): Promise<{ project_id: number; id: string; flag_id: number }[]> {
  const { rows } = await queryable.query(
    `select project_id, id, flag_id from feature_flag_rollouts
     where not is_told
       or (status = 'running' and due_at < clock_timestamp() - make_interval(secs => $1))
     order by due_at limit $2`,
    [seconds, limit],
  );
  return rows;
}

/** Cancels the rollouts of flags that are deleted. Maintenance tells its workflow. */
export async function cancelRolloutsOf(
  queryable: Queryable,
  projectId: number,
  flagIds: readonly number[],
  reason: string,
): Promise<void> {
  await queryable.query(
    `update feature_flag_rollouts set status = 'cancelled', reason = $3, due_at = null, paused_at = null,
       is_told = false, finished_at = clock_timestamp(), updated_at = clock_timestamp()
     where project_id = $1 and flag_id = any($2::int[]) and status in ('running', 'paused')`,
    [projectId, flagIds, reason],
  );
}
