import type { Queryable } from '../../db/pool.ts';
import type { ReplayKey } from './replays.ts';

/** A window of masking: when it ends in milliseconds, and how many invocations it has seen. */
export interface MaskWindow {
  ends: number;
  count: number;
}

/** Reads the windows of keys in a replay. Keys are hexadecimal. */
export async function replayMasks(
  queryable: Queryable,
  { projectId, replayId }: ReplayKey,
  keys: readonly string[],
): Promise<Map<string, MaskWindow>> {
  if (keys.length === 0) return new Map();
  const { rows } = await queryable.query(
    `select encode(key, 'hex') as key, ends_at, count from function_replay_masks
     where project_id = $1 and replay_id = $2 and key in (select decode(k, 'hex') from unnest($3::text[]) k)`,
    [projectId, replayId, keys],
  );
  return new Map(rows.map((row) => [row.key, { ends: Date.parse(row.ends_at), count: row.count }]));
}

/** Stores the windows of keys in a replay. */
export async function keepReplayMasks(
  queryable: Queryable,
  { projectId, replayId }: ReplayKey,
  windows: ReadonlyMap<string, MaskWindow>,
): Promise<void> {
  if (windows.size === 0) return;
  const all = [...windows];
  await queryable.query(
    `insert into function_replay_masks (project_id, replay_id, key, ends_at, count)
     select $1, $2, decode(key, 'hex'), ends_at, count from unnest($3::text[], $4::timestamptz[], $5::bigint[])
       as w (key, ends_at, count)
     on conflict (project_id, replay_id, key) do update set ends_at = excluded.ends_at, count = excluded.count`,
    [
      ...[projectId, replayId, all.map(([key]) => key)],
      ...[all.map(([, { ends }]) => new Date(ends).toISOString()), all.map(([, { count }]) => count)],
    ],
  );
}
