import { makeSearchIndex } from './event-indexes.ts';
import { LOCKS } from './locks.ts';
import { isLockTimeout, type Pool, type Transaction, transaction } from './pool.ts';

/** How long a change of partitions waits for readers and writers. The next minute tries again. */
const LOCK_TIMEOUT = '2s';

export interface EventPartition {
  name: string;
  from: Date;
  to: Date;
}

/** Returns the week (Monday to Monday, UTC) that contains an instant, and the name of its partition. */
export function partitionOf(instant: Date): EventPartition {
  const day = new Date(Date.UTC(instant.getUTCFullYear(), instant.getUTCMonth(), instant.getUTCDate()));
  const from = new Date(day.getTime() - ((day.getUTCDay() + 6) % 7) * 86_400_000);
  const to = new Date(from.getTime() + 7 * 86_400_000);
  return { name: `events_${from.toISOString().slice(0, 10).replaceAll('-', '')}`, from, to };
}

/** Returns the week of a partition by its name. */
export function partitionNamed(name: string): EventPartition {
  return partitionOf(new Date(`${name.slice(7, 11)}-${name.slice(11, 13)}-${name.slice(13, 15)}T00:00:00Z`));
}

export async function listEventPartitions(client: Pick<Pool, 'query'>): Promise<EventPartition[]> {
  const { rows } = await client.query(
    `select c.relname as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = 'events'::regclass and c.relname ~ '^events_\\d{8}$' order by c.relname`,
  );
  return rows.map(({ name }) => partitionNamed(name));
}

async function change<T>(pool: Pool, work: (client: Transaction) => Promise<T>): Promise<T> {
  return transaction(pool, async (client) => {
    await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
    await client.query('select pg_advisory_xact_lock($1)', [LOCKS.partitions]);
    return work(client);
  });
}

/**
 * Creates the partitions of this week and of `weeksAhead` more, and of every week that has rows in the default
 * partition, which it moves there. Writers wait only for such a move, because a table is filled before it is attached.
 * Returns how many partitions it created.
 */
export async function ensureEventPartitions(pool: Pool, now: Date, weeksAhead: number): Promise<number> {
  const wanted = new Map<string, EventPartition>();
  for (let week = 0; week <= weeksAhead; week += 1) {
    const partition = partitionOf(new Date(now.getTime() + week * 7 * 86_400_000));
    wanted.set(partition.name, partition);
  }
  const { rows } = await pool.query(
    `select distinct date_trunc('week', inserted_at at time zone 'utc') at time zone 'utc' as week from events_default`,
  );
  for (const { week } of rows) {
    const partition = partitionOf(new Date(week));
    wanted.set(partition.name, partition);
  }
  for (const { name } of await listEventPartitions(pool)) wanted.delete(name);
  let made = 0;
  for (const partition of wanted.values()) {
    if (await change(pool, (client) => makePartition(client, partition))) made += 1;
  }
  return made;
}

async function makePartition(client: Transaction, { name, from, to }: EventPartition): Promise<boolean> {
  const { rows } = await client.query('select to_regclass($1) is not null as exists', [name]);
  if (rows[0].exists) return false;
  const range = [from.toISOString(), to.toISOString()];
  await client.query(`create table ${name} (like events including all)`);
  await giveToOwnerOf(client, 'events', name);
  await makeSearchIndex(client, name);
  const { rows: late } = await client.query(
    'select exists (select from events_default where inserted_at >= $1 and inserted_at < $2) as some',
    range,
  );
  if (late[0].some) {
    // Everybody must see a row exactly once, so the default partition is locked during the move.
    await client.query('lock table events_default in access exclusive mode');
    await client.query(
      `with moved as (delete from events_default where inserted_at >= $1 and inserted_at < $2 returning *)
       insert into ${name} select * from moved order by inserted_at`,
      range,
    );
  }
  // Without this constraint, Postgres would read the whole table to check that it fits.
  const bounds = `from ('${range[0]}') to ('${range[1]}')`;
  await client.query(
    `alter table ${name} add constraint week check (inserted_at >= '${range[0]}' and inserted_at < '${range[1]}')`,
  );
  await client.query(`alter table events attach partition ${name} for values ${bounds}`);
  await client.query(`alter table ${name} drop constraint week`);
  return true;
}

/** Gives a partition the owner of the table that it becomes a part of. */
export async function giveToOwnerOf(client: Transaction, table: string, name: string): Promise<void> {
  const { rows } = await client.query(
    `select quote_ident(pg_get_userbyid(relowner)) as owner from pg_class
     where oid = $1::regclass and pg_get_userbyid(relowner) <> current_user and pg_has_role(relowner, 'set')`,
    [table],
  );
  if (rows[0]) await client.query(`alter table ${name} owner to ${rows[0].owner}`);
}

/** What has to be asked and told when events are dropped. */
export interface DropHooks {
  /** Answers whether somebody still wants events of a partition. */
  isWanted(partition: string): Promise<boolean>;
  /** Runs in the transaction that drops a partition, before it is dropped. */
  isDropped(client: Transaction, partition: string): Promise<void>;
}

const NOBODY: DropHooks = { isWanted: async () => false, isDropped: async () => undefined };
const DAY = 86_400_000;
/** How many days longer than its time a partition is kept that somebody still wants. */
export const WAITED_DAYS = 7;

/**
 * Drops the weeks that ended `days` ago or earlier. Their ids stay in event_ids, so an event that was stored once is
 * not stored again after its retention. A week of which somebody still wants events is kept for some days more.
 */
export async function dropExpiredEvents(
  pool: Pool,
  now: Date,
  days: number,
  { isWanted, isDropped }: DropHooks = NOBODY,
): Promise<number> {
  const cutoff = now.getTime() - days * DAY;
  let dropped = 0;
  for (const { name, to } of await listEventPartitions(pool)) {
    if (to.getTime() > cutoff) continue;
    const isPatient = to.getTime() > cutoff - WAITED_DAYS * DAY;
    if (isPatient && (await isWanted(name))) continue;
    await change(pool, async (client) => {
      await isDropped(client, name);
      await client.query(`drop table if exists ${name}`);
      await client.query('delete from event_spans where partition = $1', [name]);
      await client.query('delete from event_weeks where partition = $1', [name]);
    });
    dropped += 1;
  }
  return dropped;
}

/** How long the summary of new events waits for other upkeep of their table. */
const SUMMARY_LOCK_TIMEOUT = '50ms';

/**
 * Makes what was stored lately easy to find by the time of storing. Where the index on `inserted_at` has no summary of some pages,
 * every reader looks at all of them, and Postgres summarises a busy table once a minute at best. Without statistics about the week,
 * Postgres would rather read all events of a project. Returns whether it could: other upkeep of the table goes first.
 */
export async function summarizeNewest(pool: Pool, now: Date): Promise<boolean> {
  try {
    return await transaction(pool, async (client) => {
      await client.query(`set local lock_timeout = '${SUMMARY_LOCK_TIMEOUT}'`);
      const { rows } = await client.query(
        `select c.reltuples < 0 as unknown, brin_summarize_new_values(i.inhrelid)
         from pg_class c join pg_index x on x.indrelid = c.oid
           join pg_inherits i on i.inhrelid = x.indexrelid and i.inhparent = 'events_inserted_at'::regclass
         where c.oid = to_regclass($1)`,
        [partitionOf(now).name],
      );
      if (rows[0]?.unknown) await client.query(`analyze ${partitionOf(now).name}`);
      return true;
    });
  } catch (error) {
    if (!isLockTimeout(error)) throw error;
    return false;
  }
}
