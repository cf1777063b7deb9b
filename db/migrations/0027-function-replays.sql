-- Replays and broadcasts: a function runs once for each of many past events, or for each of many persons.
create table function_replays (
  project_id integer not null,
  id uuid not null,
  function_id uuid not null,
  -- replay: for events; broadcast: for persons
  kind text not null,
  -- Whether it only counts.
  dry_run boolean not null,
  -- running, paused, completed, cancelled or failed
  status text not null default 'running',
  -- Why it was cancelled, or why it failed.
  reason text,
  -- Which events, by their timestamp.
  after timestamptz,
  before timestamptz,
  -- Events that were stored later are left out. Null: not determined yet.
  horizon timestamptz,
  -- Which persons: the conditions, as they were given and compiled.
  properties json,
  bytecode json,
  -- Null: as fast as the queue takes them.
  rate_per_second integer,
  -- How many pages are done. A page that has been done already changes nothing.
  page bigint not null default 0,
  -- The last event, or person, that was looked at.
  last_timestamp timestamptz,
  last_id uuid,
  -- How many events or persons there are. Null: not counted.
  total bigint,
  scanned bigint not null default 0,
  matched bigint not null default 0,
  masked bigint not null default 0,
  queued bigint not null default 0,
  -- Filters that failed. Their events count as not matched.
  filter_errors bigint not null default 0,
  -- What it waits for: queue or watcher. Null: nothing.
  held text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  primary key (project_id, id)
);
-- One at a time for each function. One that only counts may run beside it.
create unique index function_replays_active on function_replays (project_id, function_id, dry_run)
  where status in ('running', 'paused');
create index function_replays_newest on function_replays (project_id, function_id, created_at desc, id);
create index function_replays_quiet on function_replays (updated_at) where status in ('running', 'paused');
create index function_replays_finished on function_replays (finished_at) where finished_at is not null;

-- The windows of masking in a replay. They follow the time of its events, so they are not those of new events.
create table function_replay_masks (
  project_id integer not null,
  replay_id uuid not null,
  key bytea not null,
  ends_at timestamptz not null,
  count bigint not null,
  primary key (project_id, replay_id, key)
);

-- Since when a transaction waits for functions to see its events. Only people look at it.
alter table function_batches add column noted_at timestamptz not null default clock_timestamp();
