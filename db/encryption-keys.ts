import type { Queryable } from './pool.ts';

/** A key without its material. The fingerprint tells apart two keys that were given one id. */
export interface KeyMark {
  id: string;
  fingerprint: string;
}

/** A process, and the keys that it holds. It seals new secrets with the first of them. */
export interface KeyHolder {
  id: string;
  process: string;
  host: string;
  pid: number;
  keys: KeyMark[];
}

/** Says which keys a process holds, and that it lives for so many milliseconds. */
export async function announceKeys(
  queryable: Queryable,
  { id, process, host, pid, keys }: KeyHolder,
  milliseconds: number,
): Promise<void> {
  await queryable.query(
    `insert into key_holders (id, process, host, pid, key_ids, fingerprints, alive_until)
     values ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7 * interval '1 millisecond')
     on conflict (id) do update set key_ids = excluded.key_ids, fingerprints = excluded.fingerprints,
       alive_until = excluded.alive_until`,
    [id, process, host, pid, keys.map((one) => one.id), keys.map((one) => one.fingerprint), milliseconds],
  );
}

/** Says that a process has stopped, and forgets those that are gone for long. */
export async function withdrawKeys(queryable: Queryable, id: string): Promise<void> {
  await queryable.query(
    `delete from key_holders where id = $1 or alive_until < clock_timestamp() - interval '1 hour'`,
    [id],
  );
}

/** Lists the processes that live. */
export async function listKeyHolders(queryable: Queryable): Promise<KeyHolder[]> {
  const { rows } = await queryable.query(
    `select id, process, host, pid, key_ids, fingerprints from key_holders
     where alive_until > clock_timestamp() order by process, host, pid, id`,
  );
  return rows.map(({ key_ids: ids, fingerprints, ...holder }) => ({
    ...holder,
    keys: ids.map((id: string, index: number) => ({ id, fingerprint: fingerprints[index] })),
  }));
}

export interface KeyRotation extends KeyMark {
  finished_at: string | null;
}

/** Returns the rotation that began last. */
export async function findLatestRotation(queryable: Queryable): Promise<KeyRotation | undefined> {
  const { rows } = await queryable.query(
    `select key_id as id, fingerprint, finished_at from key_rotations
     order by finished_at desc nulls first limit 1`,
  );
  return rows[0];
}

/** Begins a rotation to a new key. One that was begun and not finished is given up. */
export async function beginRotation(queryable: Queryable, { id, fingerprint }: KeyMark): Promise<void> {
  await queryable.query('delete from key_rotations where finished_at is null');
  await queryable.query('insert into key_rotations (key_id, fingerprint) values ($1, $2)', [id, fingerprint]);
}

export async function finishRotation(queryable: Queryable, id: string): Promise<void> {
  await queryable.query('update key_rotations set finished_at = clock_timestamp() where key_id = $1', [id]);
}
