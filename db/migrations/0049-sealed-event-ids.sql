-- The ids of events do not stay in event_ids for ever: maintenance copies them into blocks of sorted ids, and takes them from the
-- table only after the blocks can be asked. See docs/ingestion.md and db/event-id-sealing.ts.

-- Some million ids that were sealed together.
create table event_id_segments (
  number integer primary key,
  ids integer not null default 0,
  -- While it is filled, the last id of event_ids that was copied.
  last_project integer not null default -2147483648,
  last_uuid uuid not null default '00000000-0000-0000-0000-000000000000',
  filled_at timestamptz,
  -- From here on, whoever stores events asks it.
  sealed_at timestamptz,
  -- The last block whose ids were taken from event_ids.
  removed_project integer not null default -2147483648,
  removed_uuid uuid not null default '00000000-0000-0000-0000-000000000000',
  -- From here on, event_ids has none of its ids.
  removed_at timestamptz
);

-- Up to 336 ids of a project, which fill a page: 16 bytes of uuid and 8 of timestamp for each, in the order of the uuids.
create table event_id_blocks (
  segment integer not null,
  project_id integer not null,
  first uuid not null,
  ids bytea not null,
  primary key (segment, project_id, first)
);
alter table event_id_blocks alter column ids set storage plain;
-- For the deletion of a project.
create index event_id_blocks_project on event_id_blocks (project_id);

-- Bloom filters. They say of nearly every id that it is in none of some segments. All of them can be made again from the blocks.
create table event_id_filters (
  -- Which ids: the first 16 bits of their hashes.
  part integer not null,
  -- Of the last segment whose ids are in the filter.
  number integer not null,
  bits bigint[] not null check (cardinality(bits) > 0),
  primary key (part, number)
);
alter table event_id_filters alter column bits set storage plain;

-- The filters that are there, each with all of its rows. What has none of these rows is not asked for.
create table event_id_filter_sets (
  number integer primary key,
  first_segment integer not null,
  -- The hash of a certain id. A Postgres that hashes otherwise does not ask this filter.
  sample bigint not null,
  -- What the rows of the filter hash to.
  digest text not null
);

-- A filter without some of its rows would forget their ids: so whoever takes rows away takes the filter away.
create function forget_event_id_filters() returns trigger language plpgsql as $$
begin
  if tg_op = 'TRUNCATE' then delete from event_id_filter_sets;
  else delete from event_id_filter_sets where number in (select g.number from gone g);
  end if;
  return null;
end $$;
create trigger forget_deleted after delete on event_id_filters referencing old table as gone
  for each statement execute function forget_event_id_filters();
create trigger forget_updated after update on event_id_filters referencing old table as gone
  for each statement execute function forget_event_id_filters();
create trigger forget_truncated after truncate on event_id_filters
  for each statement execute function forget_event_id_filters();

-- The row of a filter that an id with this hash belongs to.
create function event_id_part(hash bigint) returns integer language sql immutable parallel safe as $$
  select (hash >> 48 & 65535)::integer
$$;

-- Three bits of 64, from 18 bits of a hash.
create function event_id_mask(hash bigint) returns bigint language sql immutable parallel safe as $$
  select (1::bigint << (hash & 63)::integer) | (1::bigint << (hash >> 6 & 63)::integer) | (1::bigint << (hash >> 12 & 63)::integer)
$$;

-- The word of a row of a filter that belongs to 24 bits of a hash.
create function event_id_word(bits bigint[], place bigint) returns bigint language sql immutable parallel safe as $$
  select bits[(place & 16777215)::integer % cardinality(bits) + 1]
$$;

-- The timestamp of an id in a block. Null: it is not there.
create function event_time_in_block(ids bytea, wanted uuid) returns timestamptz language plpgsql immutable parallel safe as $$
declare
  key bytea := uuid_send(wanted);
  low integer := 0;
  high integer := octet_length(ids) / 24 - 1;
  middle integer;
  found bytea;
  microseconds bigint;
begin
  while low <= high loop
    middle := (low + high) / 2;
    found := substr(ids, middle * 24 + 1, 16);
    if found = key then
      microseconds := ('x' || encode(substr(ids, middle * 24 + 17, 8), 'hex'))::bit(64)::bigint;
      -- In one step, a distant time would lose its last digits.
      return timestamptz '2000-01-01 00:00:00+00' + microseconds / 1000000 * interval '1 second'
        + microseconds % 1000000 * interval '1 microsecond';
    elsif found < key then low := middle + 1;
    else high := middle - 1;
    end if;
  end loop;
  return null;
end $$;

-- The filters that these ids may be in, by the places of the ids in the arrays.
create function filtered_event_ids(projects integer[], uuids uuid[]) returns table (place integer, number integer)
language sql stable as $$
  -- The expressions of an id are worked out once, and its rows are read by one key.
  select n.place, f.number
  from (
      select h.place::integer as place, h.hash, event_id_part(h.hash) as part, event_id_mask(h.hash) as mask
      from (
        select u.place, uuid_hash_extended(u.uuid, u.project_id) as hash
        from unnest(projects, uuids) with ordinality as u (project_id, uuid, place) offset 0) h offset 0) n
    cross join lateral (
      select o.number from event_id_filters o
      where o.part = n.part
        and event_id_word(o.bits, n.hash >> 24) & n.mask = n.mask
        and event_id_word(o.bits, n.hash) & event_id_mask(n.hash >> 30) = event_id_mask(n.hash >> 30) offset 0) f
$$;

-- Which of these ids are sealed, by their places in the arrays, and the timestamps of their events. A filter only tells where an id
-- cannot be: the blocks decide.
create function sealed_event_ids(projects integer[], uuids uuid[]) returns table (place integer, stored timestamptz)
-- Its plans are kept, also those that were made while the tables were empty: planning again for each few ids takes longer than asking.
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan as $$
declare
  unfiltered integer[];
  places integer[];
  filters integer[];
  one record;
  block record;
begin
  select coalesce(array_agg(s.number), '{}') into unfiltered
    from event_id_segments s
    where s.sealed_at is not null and not exists (
      select from event_id_filter_sets f
      where s.number between f.first_segment and f.number
        and f.sample = uuid_hash_extended('01234567-89ab-4cde-8f01-23456789abcd', 1));
  begin
    select array_agg(f.place), array_agg(f.number) into places, filters from filtered_event_ids(projects, uuids) f;
  exception when data_corrupted or index_corrupted then
    -- A damaged page of a filter keeps nobody from storing events. Maintenance makes the filters again.
    select array_agg(s.number) into unfiltered from event_id_segments s where s.sealed_at is not null;
  end;
  for one in
    select h.place, h.filter, projects[h.place] as project_id, uuids[h.place] as uuid
    from (
      select * from unnest(places, filters) as hit (place, filter)
      union all select all_of.place, null from generate_series(1, cardinality(uuids)) as all_of (place)
        where cardinality(unfiltered) > 0) h
  loop
    for block in
      select b.ids
      from event_id_segments s cross join lateral (
        select o.ids from event_id_blocks o
        where o.segment = s.number and o.project_id = one.project_id and o.first <= one.uuid
        order by o.first desc limit 1) b
      where s.sealed_at is not null and case when one.filter is null then s.number = any(unfiltered)
        else s.number <> all(unfiltered) and exists (
          select from event_id_filter_sets g
          where g.number = one.filter and s.number between g.first_segment and g.number) end
    loop
      stored := event_time_in_block(block.ids, one.uuid);
      if stored is not null then
        place := one.place;
        return next;
        exit;
      end if;
    end loop;
  end loop;
end $$;

-- Whoever writes into event_ids is told of ids that are sealed, also a process of an older version, which does not ask. It would not
-- store its events, and would be told again: so it is told to come back later, when it may have been replaced.
create function refuse_sealed_event_ids() returns trigger language plpgsql as $$
declare
  projects integer[];
  uuids uuid[];
begin
  if not exists (select from event_id_segments where sealed_at is not null) then return null; end if;
  select array_agg(f.project_id), array_agg(f.uuid) into projects, uuids from fresh f;
  if exists (select from sealed_event_ids(projects, uuids)) then
    raise exception using errcode = 'serialization_failure', table = 'event_ids',
      message = 'an event with the same project and uuid was stored before';
  end if;
  return null;
end $$;

-- Writers would queue behind a lock that waits for somebody else, so it waits shortly, and again.
do $$
begin
  for attempt in 1..100 loop
    begin
      set local lock_timeout = '1s';
      create trigger refuse_sealed after insert on event_ids referencing new table as fresh
        for each statement execute function refuse_sealed_event_ids();
      return;
    exception when lock_not_available then
      perform pg_sleep(1);
    end;
  end loop;
  raise 'event_ids was locked by somebody else all the time';
end $$;
