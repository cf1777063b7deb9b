import { instantOf, takeStamp } from './horizon.ts';
import { personId } from './person-ids.ts';
import type { Transaction } from './pool.ts';

/** How long a deletion waits for events that are being stored for the same persons. */
const LOCK_TIMEOUT = '5s';

export interface DeletedPerson {
  id: string;
  distinct_ids: number;
  /** The ids of persons who have become part of it. What they did before is stored under these. */
  absorbed: string[];
}

/** Which persons to delete: those with these ids, or those of these distinct ids. */
export type DoomedPersons = { ids: readonly string[] } | { distinctIds: readonly string[] };

/**
 * Locks the persons and returns their ids. Distinct ids move between persons only under the lock of the person. So the
 * distinct ids are looked up again after each lock, until all persons that they lead to are locked.
 */
async function lockPersons(client: Transaction, projectId: number, doomed: DoomedPersons): Promise<string[]> {
  const locked = new Set<string>();
  const asked = new Set<string>();
  for (;;) {
    const wanted =
      'ids' in doomed
        ? doomed.ids.map((id) => id.toLowerCase())
        : (
            await client.query(
              'select distinct person_id from person_distinct_ids where project_id = $1 and distinct_id = any($2)',
              [projectId, doomed.distinctIds],
            )
          ).rows.map((row) => row.person_id as string);
    const more = wanted.filter((id) => !asked.has(id));
    if (more.length === 0) {
      const still = new Set(wanted);
      return [...locked].filter((id) => still.has(id));
    }
    const { rows } = await client.query(
      'select id from persons where project_id = $1 and id = any($2::uuid[]) order by id for update',
      [projectId, more],
    );
    for (const { id } of rows) locked.add(id);
    for (const id of more) asked.add(id);
  }
}

/**
 * Deletes persons, in the transaction of the caller. The last state of their distinct ids stays in
 * deleted_distinct_ids, with the time of the horizon, so that exports report the deletion. The next event with such a
 * distinct id creates a new person.
 */
export async function deletePersons(
  client: Transaction,
  projectId: number,
  doomed: DoomedPersons,
): Promise<DeletedPerson[]> {
  await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
  const stamp = await takeStamp(client);
  const ids = await lockPersons(client, projectId, doomed);
  if (ids.length === 0) return [];
  const { rows } = await client.query(
    `with gone as (
       delete from person_distinct_ids d using persons p
       where d.project_id = $1 and d.person_id = any($2::uuid[]) and p.project_id = d.project_id and p.id = d.person_id
       returning d.distinct_id, d.version, p.id, p.version as person_version, p.created_at),
     told as (
       insert into deleted_distinct_ids as known
         (project_id, distinct_id, person_id, version, person_version, person_created_at, changed_at)
       select $1, distinct_id, id, version + 1, person_version + 1, created_at,
         ${instantOf('$3::bigint')}
       from gone order by distinct_id
       on conflict (project_id, distinct_id) do update set
         person_id = excluded.person_id,
         version = greatest(known.version + 1, excluded.version),
         person_version = excluded.person_version,
         person_created_at = excluded.person_created_at,
         changed_at = excluded.changed_at)
     select id, array_agg(distinct_id) as distinct_ids from gone group by id`,
    [projectId, ids, stamp],
  );
  await client.query('delete from persons where project_id = $1 and id = any($2::uuid[])', [projectId, ids]);
  const named = new Map<string, readonly string[]>(rows.map((row) => [row.id, row.distinct_ids]));
  const created = new Map(
    ids.map((id) => [id, (named.get(id) ?? []).map((one) => personId(projectId, one))] as const),
  );
  const living = await livingOf(client, projectId, [...created.values()].flat());
  return ids.map((id) => ({
    id,
    distinct_ids: named.get(id)?.length ?? 0,
    absorbed: (created.get(id) ?? []).filter((one) => one !== id && !living.has(one)),
  }));
}

/** Which persons with these ids there are. */
async function livingOf(
  client: Transaction,
  projectId: number,
  ids: readonly string[],
): Promise<Set<string>> {
  const { rows } = await client.query(
    'select id from persons where project_id = $1 and id = any($2::uuid[])',
    [projectId, ids],
  );
  return new Set(rows.map((row) => row.id));
}
