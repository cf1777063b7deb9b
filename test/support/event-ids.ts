/** Filters of few ids need no 65,536 rows. */
export const FEW_PARTS = 64;
export const FEW_PARTS_SQL = `
  create or replace function event_id_part(hash bigint) returns integer language sql immutable parallel safe as $$
    select (hash >> 48 & ${FEW_PARTS - 1})::integer
  $$`;

/** The ids of blocks, one a row: `where` chooses the segments. */
const blockIds = (where: string) => `(
  select b.project_id, b.segment, encode(substr(b.ids, 24 * at + 1, 16), 'hex')::uuid as uuid
  from event_id_blocks b join event_id_segments s on s.number = b.segment,
    generate_series(0, octet_length(b.ids) / 24 - 1) as at
  where ${where}) as sealed`;

/** Every id that is known, once for each place where it is. */
export const KNOWN_IDS = `(
  select project_id, uuid, 0 as segment from event_ids
  union all select project_id, uuid, segment from ${blockIds('s.sealed_at is not null')}) as known`;

/** Ids that are in two places although nothing is under way. */
export const TWICE = `
  select project_id, uuid, count(*)::int as places from (
    select project_id, uuid, 0 as segment from event_ids
    union all select project_id, uuid, segment from ${blockIds('s.removed_at is not null')}) as settled
  group by 1, 2 having count(*) > 1`;
