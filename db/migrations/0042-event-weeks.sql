-- What helps to find events: indexes of each week of its own, and which times a project's events in a week have. See
-- db/event-weeks.ts.

-- The partitions of events that have their indexes. A week that is not listed may get further events.
create table event_weeks (
  -- The name of the partition.
  partition text collate "C" primary key,
  -- Up to which block of the table the index of the open week knows what is in it.
  summarized bigint not null default 0,
  -- Since when no event was added any more, and all indexes are there. Null: the week is open.
  sealed_at timestamptz
);

-- Which times a project's events in a sealed week have. Where a project has no row, it has no event.
create table event_spans (
  project_id integer not null,
  partition text collate "C" not null,
  -- The weeks of their timestamps, counted from 1970-01-01. A few events may lie years off, because the clocks of clients do. Null:
  -- there are too many of them.
  weeks integer[],
  primary key (project_id, partition)
);
create index event_spans_partition on event_spans (partition);

-- Later partitions get this index when they are made. On a week with events it would hold up ingestion.
do $$
declare
  week text;
  isEmpty boolean;
begin
  for week in
    select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'events'::regclass and c.relname ~ '^events_\d{8}$'
  loop
    execute format('select not exists (select from %I)', week) into isEmpty;
    if isEmpty then
      execute format(
        'create index %I on %I using brin (event text_bloom_ops (n_distinct_per_range = 100),
           distinct_id text_bloom_ops (n_distinct_per_range = 1500),
           person_id uuid_bloom_ops (n_distinct_per_range = 1500)) with (pages_per_range = 64)',
        week || '_search', week);
    end if;
  end loop;
end $$;
