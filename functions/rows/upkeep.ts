import { giveToOwnerOf, partitionOf } from '../../db/event-partitions.ts';
import { type Pool, type Queryable, transaction } from '../../db/pool.ts';
import { forgetPersons } from './forgotten-persons.ts';

/** A week of the history, and the name of its partition. */
function weekOf(instant: Date) {
  const { name, from, to } = partitionOf(instant);
  return { name: name.replace(/^events_/, 'function_invocations_'), from, to };
}

const LOCK_TIMEOUT = '2s';
const WEEK = 7 * 86_400_000;

async function historyPartitions(queryable: Queryable): Promise<string[]> {
  const { rows } = await queryable.query(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'function_invocations'::regclass and c.relname ~ '_\\d{8}$' order by c.relname`,
  );
  return rows.map((row) => row.name);
}

/**
 * Creates the partitions of this week and of some weeks ahead. What is in the default partition by then is moved. Returns how
 * many it made.
 */
export async function ensureHistoryPartitions(pool: Pool, now: Date, weeksAhead: number): Promise<number> {
  const known = new Set(await historyPartitions(pool));
  let made = 0;
  for (let week = 0; week <= weeksAhead; week += 1) {
    const { name, from, to } = weekOf(new Date(now.getTime() + week * WEEK));
    if (known.has(name)) continue;
    const range = [from.toISOString(), to.toISOString()];
    await transaction(pool, async (client) => {
      await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
      await client.query('lock table function_invocations_default in access exclusive mode');
      await client.query(`create table if not exists ${name} (like function_invocations including all)`);
      await giveToOwnerOf(client, 'function_invocations', name);
      await client.query(
        `with moved as (delete from function_invocations_default where finished_at >= $1 and finished_at < $2 returning *)
         insert into ${name} select * from moved`,
        range,
      );
      await client.query(
        `alter table function_invocations attach partition ${name} for values from ('${range[0]}') to ('${range[1]}')`,
      );
    });
    made += 1;
  }
  return made;
}

/** Drops the weeks of the history that ended before an instant. Returns how many. */
export async function dropHistory(pool: Pool, before: Date): Promise<number> {
  let dropped = 0;
  for (const name of await historyPartitions(pool)) {
    const digits = name.slice(-8);
    const from = Date.parse(`${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}T00:00:00Z`);
    if (from + WEEK > before.getTime()) continue;
    await transaction(pool, async (client) => {
      await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
      await client.query(`drop table if exists ${name}`);
    });
    dropped += 1;
  }
  const { rowCount } = await pool.query(
    `delete from function_invocations_default where ctid = any(array(
       select ctid from function_invocations_default where finished_at < $1 limit 10000))`,
    [before],
  );
  return dropped + (rowCount ?? 0);
}

/** Deletes lines of logs before an instant. Returns how many. */
export async function deleteLogs(queryable: Queryable, before: Date, limit: number): Promise<number> {
  const { rowCount } = await queryable.query(
    'delete from function_logs where ctid = any(array(select ctid from function_logs where timestamp < $1 limit $2))',
    [before, limit],
  );
  return rowCount ?? 0;
}

/** Deletes counts of hours before an instant. Returns how many. */
export async function deleteCounts(queryable: Queryable, before: Date, limit: number): Promise<number> {
  const { rowCount } = await queryable.query(
    'delete from function_metrics where ctid = any(array(select ctid from function_metrics where hour < $1 limit $2))',
    [before, limit],
  );
  return rowCount ?? 0;
}

/** Makes waiting invocations due whose function was switched off since. Then they are cancelled. Returns how many. */
export async function hastenCancelled(queryable: Queryable, limit: number): Promise<number> {
  const { rowCount } = await queryable.query(
    `update function_queue q set due_at = clock_timestamp() where q.seq = any(array(
       select w.seq from function_queue w
       left join functions f on f.project_id = w.project_id and f.id = w.function_id
         and f.enabled and f.deleted_at is null and f.enabled_at <= w.created_at
       where f.id is null and w.lease is null and w.due_at > clock_timestamp() limit $1 for update of w skip locked))`,
    [limit],
  );
  return rowCount ?? 0;
}

/**
 * Deletes what persons leave behind in queue and history: their invocations, and the lines of their logs. Invocations move
 * between the two while this waits for whoever moves them, so it looks again until it finds none. What is kept as positions
 * comes into the queue, so it is looked at first.
 */
export async function deleteOfPersons(
  queryable: Queryable,
  projectId: number,
  personIds: readonly string[],
): Promise<void> {
  await forgetPersons(queryable, projectId, personIds);
  for (let found = true; found; ) {
    found = false;
    for (const table of ['function_queue', 'function_invocations']) {
      const { rows } = await queryable.query(
        `with gone as (
           delete from ${table} where project_id = $1 and person_id = any($2::uuid[]) returning id, function_id),
         lines as (
           delete from function_logs l using gone
           where l.project_id = $1 and l.function_id = gone.function_id and l.instance_id = gone.id)
         select count(*) > 0 as some from gone`,
        [projectId, personIds],
      );
      found ||= rows[0].some;
    }
  }
}
