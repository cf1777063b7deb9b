import type { Queryable, Transaction } from '../../db/pool.ts';
import { fits } from '../../db/reading.ts';
import { type ShownUser, shownUser } from '../../db/users.ts';

export interface ScheduledChangeRow {
  project_id: number;
  id: number;
  flag_id: number;
  /** JSON, spelled as it was stored. */
  payload: string;
  scheduled_at: string;
  executed_at: string | null;
  failure_reason: string | null;
  created_by: ShownUser | null;
  created_at: string;
  updated_at: string;
}

export interface ScheduledChangeKey {
  projectId: number;
  changeId: number;
}

const COLUMNS = `c.project_id, c.id, c.flag_id, c.payload::text as payload, c.scheduled_at, c.executed_at, c.failure_reason,
  c.created_at, c.updated_at, ${shownUser('c.created_by')} as created_by`;

export async function insertScheduledChange(
  queryable: Queryable,
  row: Pick<ScheduledChangeRow, 'project_id' | 'flag_id' | 'payload' | 'scheduled_at'> & {
    created_by: number | null;
    key_id: string | null;
  },
): Promise<ScheduledChangeRow> {
  const { rows } = await queryable.query(
    `with c as (
       insert into feature_flag_scheduled_changes (project_id, flag_id, payload, scheduled_at, created_by, key_id)
       values ($1, $2, $3, $4, $5, $6) returning *)
     select ${COLUMNS} from c`,
    [row.project_id, row.flag_id, row.payload, row.scheduled_at, row.created_by, row.key_id],
  );
  return rows[0];
}

export async function findScheduledChange(
  queryable: Queryable,
  { projectId, changeId }: ScheduledChangeKey,
): Promise<ScheduledChangeRow | undefined> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from feature_flag_scheduled_changes c where c.project_id = $1 and c.id = $2`,
    [projectId, changeId],
  );
  return rows[0];
}

/** Lists scheduled changes, the next one first and then those that were tried, the last one first. */
export async function listScheduledChanges(
  queryable: Queryable,
  {
    projectId,
    flagId,
    limit,
    offset,
  }: { projectId: number; flagId?: number | undefined } & {
    limit: number;
    offset: number;
  },
): Promise<{ count: number; rows: ScheduledChangeRow[] }> {
  const where = 'c.project_id = $1 and ($2::int is null or c.flag_id = $2)';
  const values = [projectId, flagId ?? null];
  const counted = await queryable.query(
    `select count(*)::int as count from feature_flag_scheduled_changes c where ${where}`,
    values,
  );
  const order = 'order by c.executed_at desc nulls first, c.scheduled_at, c.id';
  const { rows } = await queryable.query(
    `with fitting as (
       select c.id, row_number() over (${order}) as number,
         sum(c.payload_bytes) over (${order} rows unbounded preceding) as bytes
       from (select c.id, c.executed_at, c.scheduled_at, c.payload_bytes from feature_flag_scheduled_changes c
         where ${where} ${order} limit $3 offset $4) c)
     select ${COLUMNS} from fitting n join feature_flag_scheduled_changes c on c.project_id = $1 and c.id = n.id
     where ${fits('n')} order by n.number`,
    [...values, limit, offset],
  );
  return { count: counted.rows[0].count, rows };
}

/** Lists what is planned for a flag and still to come, the next one first. */
export async function plannedChanges(
  queryable: Queryable,
  { projectId, flagId }: { projectId: number; flagId: number },
): Promise<ScheduledChangeRow[]> {
  const { rows } = await queryable.query(
    `select ${COLUMNS} from feature_flag_scheduled_changes c
     where c.project_id = $1 and c.flag_id = $2 and c.executed_at is null order by c.scheduled_at, c.id`,
    [projectId, flagId],
  );
  return rows;
}

/** How many changes of a project are still to come, and the bytes of their payloads. One change is left out. */
export async function sizeOfPlannedChanges(
  queryable: Queryable,
  projectId: number,
  without: number | null,
): Promise<{ changes: number; bytes: number }> {
  const { rows } = await queryable.query(
    `select count(*)::int as changes, coalesce(sum(payload_bytes), 0)::float8 as bytes
     from feature_flag_scheduled_changes
     where project_id = $1 and executed_at is null and id is distinct from $2`,
    [projectId, without],
  );
  return rows[0];
}

/** Changes what is still to come. Undefined: it is not. */
export async function updateScheduledChange(
  queryable: Queryable,
  { projectId, changeId }: ScheduledChangeKey,
  { payload, scheduled_at }: { payload?: string | undefined; scheduled_at?: string | undefined },
): Promise<ScheduledChangeRow | undefined> {
  const { rows } = await queryable.query(
    `with c as (
       update feature_flag_scheduled_changes set payload = coalesce($3::json, payload),
         scheduled_at = coalesce($4, scheduled_at), updated_at = clock_timestamp(), is_told = false
       where project_id = $1 and id = $2 and executed_at is null returning *)
     select ${COLUMNS} from c`,
    [projectId, changeId, payload ?? null, scheduled_at ?? null],
  );
  return rows[0];
}

/** Deletes a change, also one that was tried. Answers whether there was one. */
export async function deleteScheduledChange(
  queryable: Queryable,
  { projectId, changeId }: ScheduledChangeKey,
): Promise<boolean> {
  const { rowCount } = await queryable.query(
    'delete from feature_flag_scheduled_changes where project_id = $1 and id = $2',
    [projectId, changeId],
  );
  return (rowCount ?? 0) > 0;
}

/** A change as whoever carries it out needs it. */
export interface DueChange {
  flag_id: number;
  payload: string;
  is_over: boolean;
  failed: boolean;
  /** In how many milliseconds it is due. */
  wait: number;
  created_by: number | null;
  key_id: string | null;
}

/** Locks a change until the transaction ends. */
export const lockScheduledChange = (
  client: Transaction,
  key: ScheduledChangeKey,
): Promise<DueChange | undefined> => readDueChange(client, key, 'for update');

/** Reads how it stands with a change. */
export async function readDueChange(
  client: Queryable,
  { projectId, changeId }: ScheduledChangeKey,
  locking = '',
): Promise<DueChange | undefined> {
  const { rows } = await client.query(
    `select flag_id, payload::text as payload, executed_at is not null as is_over, failure_reason is not null as failed,
       created_by, key_id,
       greatest(0, ceil(extract(epoch from scheduled_at - clock_timestamp()) * 1000))::float8 as wait
     from feature_flag_scheduled_changes where project_id = $1 and id = $2 ${locking}`,
    [projectId, changeId],
  );
  return rows[0];
}

/** Writes down that a change was tried, and why nothing came of it. */
export async function finishScheduledChange(
  queryable: Queryable,
  { projectId, changeId }: ScheduledChangeKey,
  failureReason: string | null,
): Promise<void> {
  await queryable.query(
    `update feature_flag_scheduled_changes set executed_at = clock_timestamp(), failure_reason = $3
     where project_id = $1 and id = $2 and executed_at is null`,
    [projectId, changeId, failureReason],
  );
}

/** Finds the change of each project that has been due for longest. Some projects are left out. */
export async function firstDueChanges(
  queryable: Queryable,
  { without, limit }: { without: readonly number[]; limit: number },
): Promise<ScheduledChangeKey[]> {
  const { rows } = await queryable.query(
    `select project_id, id from (
       select distinct on (project_id) project_id, id, scheduled_at from feature_flag_scheduled_changes
       where executed_at is null and scheduled_at <= clock_timestamp() and project_id <> all($1::int[])
       order by project_id, scheduled_at, id) as first
     order by scheduled_at, id limit $2`,
    [without, limit],
  );
  return rows.map(({ project_id: projectId, id: changeId }) => ({ projectId, changeId }));
}

/** Counts the changes of a project that are due. */
export async function countDueChanges(queryable: Queryable, projectId: number): Promise<number> {
  const { rows } = await queryable.query(
    `select count(*)::int as count from feature_flag_scheduled_changes
     where project_id = $1 and executed_at is null and scheduled_at <= clock_timestamp()`,
    [projectId],
  );
  return rows[0].count;
}

/** Lists changes of which Temporal has not heard, and those that are late. */
export async function neglectedChanges(
  queryable: Queryable,
  { seconds, limit }: { seconds: number; limit: number },
): Promise<{ project_id: number; id: number; flag_id: number }[]> {
  const { rows } = await queryable.query(
    `select project_id, id, flag_id from feature_flag_scheduled_changes
     where executed_at is null and (not is_told or scheduled_at < clock_timestamp() - make_interval(secs => $1))
     order by scheduled_at limit $2`,
    [seconds, limit],
  );
  return rows;
}
