import { storedBefore } from './horizon.ts';
import { type Pool, transaction } from './pool.ts';

/** How many changed persons are read in one transaction, besides those that changed at the same moment as the last one. */
const AT_ONCE = 1_000;
/** After this, what is left waits for the next call, which begins with the newest changes of all projects. */
const LONGEST_MILLISECONDS = 2 * 60_000;

interface Stop {
  signal: AbortSignal;
  beat(): void;
}

/**
 * Reads the words of persons that changed since the last time, by which they are found. Returns how many there were. Projects
 * take turns, so one with many changes does not keep the others waiting: neither now, nor with what they change meanwhile.
 */
export async function readPersonWords(
  pool: Pool,
  { signal, beat }: Stop,
  {
    atOnce = AT_ONCE,
    longest = LONGEST_MILLISECONDS,
  }: { atOnce?: number | undefined; longest?: number } = {},
): Promise<number> {
  const end = performance.now() + longest;
  // Later, somebody may still store a change from before.
  const before = await storedBefore(pool);
  const { rows: behind } = await pool.query(
    `select pr.id from projects pr left join person_words_read r on r.project_id = pr.id
     where exists (select from persons p where p.project_id = pr.id
       and p.changed_at > coalesce(r.through, '-infinity') and p.changed_at < $1)
     order by pr.id`,
    [before],
  );
  let read = 0;
  for (let left: number[] = behind.map(({ id }) => id); left.length > 0; ) {
    const unfinished: number[] = [];
    for (const id of left) {
      signal.throwIfAborted();
      beat();
      const some = await readSome(pool, id, before, atOnce);
      read += some;
      if (some >= atOnce) unfinished.push(id);
    }
    if (performance.now() >= end) break;
    left = unfinished;
  }
  return read;
}

/** Reads the words of the next persons of a project, in the order of their changes. */
function readSome(pool: Pool, projectId: number, before: string, atOnce: number): Promise<number> {
  return transaction(pool, async (client) => {
    const { rows: marks } = await client.query(
      `insert into person_words_read as r values ($1, '-infinity') on conflict (project_id) do update set through = r.through
       returning through::text`,
      [projectId],
    );
    const since = marks[0].through as string;
    const unread = 'project_id = $1 and changed_at > $2::timestamptz and changed_at < $3';
    const { rows: ends } = await client.query(
      `select coalesce(
         (select changed_at from persons where ${unread} order by changed_at offset $4 limit 1),
         (select changed_at from persons where ${unread} order by changed_at desc limit 1))::text as through`,
      [projectId, since, before, atOnce - 1],
    );
    const through = ends[0].through as string | null;
    if (through === null) return 0;
    const { rows } = await client.query(
      `with changed as (
         select id, properties from persons
         where project_id = $1 and changed_at > $2::timestamptz and changed_at <= $3::timestamptz),
       named as (
         insert into person_words as known
         select $1, id, word_vector($1, person_names(properties)) from changed
         where properties ?| array['email', 'name', 'username'] order by id
         on conflict (project_id, person_id) do update set words = excluded.words
         where known.words <> excluded.words),
       nameless as (
         delete from person_words w using changed
         where w.project_id = $1 and w.person_id = changed.id
           and not changed.properties ?| array['email', 'name', 'username'])
       select count(*)::int as count from changed`,
      [projectId, since, through],
    );
    await client.query('update person_words_read set through = $2::timestamptz where project_id = $1', [
      projectId,
      through,
    ]);
    return rows[0].count as number;
  });
}
