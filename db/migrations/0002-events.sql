-- Captured events, what makes them unique, and the horizon up to which they are final.

create table events (
  project_id integer not null,
  uuid uuid not null,
  -- When it happened, corrected for the client's clock. Any instant: late and future ones are as good as others.
  timestamp timestamptz not null,
  -- When the API received it.
  created_at timestamptz not null,
  -- The horizon's time, see db/horizon.ts. Partitions follow it, so rows are appended to the newest one only.
  inserted_at timestamptz not null,
  historical boolean not null,
  event text not null,
  distinct_id text not null,
  -- Text that was checked to be JSON: twice as fast to store and to export as jsonb, which nothing here needs.
  properties json not null,
  session_id text,
  window_id text,
  elements_chain text not null,
  -- The person as it was when the event came in.
  person_id uuid not null,
  person_mode text not null,
  person_properties json not null,
  group_0 text,
  group_1 text,
  group_2 text,
  group_3 text,
  group_4 text
) partition by range (inserted_at);

-- Paging through a project's events, newest first; and one event, whose timestamp stands in event_ids.
create index events_timestamp on events (project_id, timestamp, uuid);
-- Reading what came in between two instants: rows lie in that order, so a few bytes per megabyte find them.
create index events_inserted_at on events using brin (inserted_at) with (pages_per_range = 32, autosummarize = on);

-- Takes what no partition is there for, so that an insert never fails; maintenance moves it to its partition.
create table events_default partition of events default;

-- The weeks around the migration; the maintenance workflow makes all later ones (db/event-partitions.ts).
do $$
declare
  monday timestamptz := date_trunc('week', now() at time zone 'utc') at time zone 'utc';
begin
  for week in 0..2 loop
    execute format('create table %I partition of events for values from (%L) to (%L)',
      'events_' || to_char((monday + week * interval '7 days') at time zone 'utc', 'YYYYMMDD'),
      monday + week * interval '7 days', monday + (week + 1) * interval '7 days');
  end loop;
end $$;

-- Every event that was ever stored, whatever became of its partition: the same event sent again is stored once.
create table event_ids (
  project_id integer not null,
  uuid uuid not null,
  -- Leads from the id to the event through the index of events.
  timestamp timestamptz not null,
  primary key (project_id, uuid)
);

-- Events with inserted_at at or before `closed` are final: none is added any more. At most one row; none before the
-- first closing.
create table event_horizon (
  only_row boolean primary key default true check (only_row),
  closed timestamptz not null
);
