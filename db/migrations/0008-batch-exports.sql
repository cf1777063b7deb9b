-- Batch exports: what is to be exported, its runs and backfills, what they said, and counts of them.

create table batch_exports (
  project_id integer not null,
  id uuid not null,
  name text not null,
  model text not null check (model in ('events', 'persons', 'sessions')),
  destination_type text not null,
  -- What of the destination's configuration anybody may see.
  config jsonb not null,
  -- The rest: one JSON object, sealed (secrets/envelope.ts) for `batch_exports/<id>/secrets`. Null: there is none.
  secrets text,
  interval text not null check (interval in ('every 5 minutes', 'every 15 minutes', 'hour', 'day', 'week')),
  timezone text not null default 'UTC',
  -- Seconds after midnight, and for weeks after Sunday's midnight, at which intervals begin.
  interval_offset integer not null default 0 check (interval_offset between 0 and 604799),
  paused boolean not null default false,
  start_at timestamptz,
  end_at timestamptz,
  last_paused_at timestamptz,
  hogql_query text,
  schema jsonb,
  filters jsonb,
  -- Where it writes: the store, and under which keys; see destinations/write-target.ts. Null: nowhere.
  write_store text,
  write_target jsonb,
  created_at timestamptz not null default clock_timestamp(),
  last_updated_at timestamptz not null default clock_timestamp(),
  -- Set: it is gone for everybody but its runs and the maintenance.
  deleted_at timestamptz,
  primary key (project_id, id)
);
create index batch_exports_created_at on batch_exports (project_id, created_at desc, id) where deleted_at is null;
-- A workflow knows its export's id, whatever project it was moved to.
create index batch_exports_id on batch_exports (id);
create index batch_exports_write_store on batch_exports (write_store) where deleted_at is null;

-- Numbers that only grow, over all runs: of two attempts the one with the higher number is the later one.
create sequence batch_export_fences;

create table batch_export_runs (
  project_id integer not null,
  id uuid not null,
  batch_export_id uuid not null,
  backfill_id uuid,
  -- The workflow that does it.
  workflow_id text not null,
  workflow_run_id text not null,
  status text not null check (status in ('Starting', 'Running', 'Completed', 'Failed', 'FailedRetryable', 'FailedBilling',
    'Cancelled', 'Terminated', 'TimedOut', 'ContinuedAsNew')),
  -- Null: from the beginning.
  data_interval_start timestamptz,
  data_interval_end timestamptz not null,
  -- Of the attempt that may change this row and complete what it writes.
  fence bigint not null,
  records_completed bigint,
  records_total_count bigint,
  records_failed bigint,
  bytes_exported bigint,
  -- Of the rows, whatever their order: two reads of the interval can be compared.
  content_hash text,
  -- What was written: the key of the manifest, where the destination has one.
  manifest_key text,
  latest_error text,
  created_at timestamptz not null default clock_timestamp(),
  last_updated_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  primary key (project_id, id),
  unique (project_id, workflow_run_id)
);
-- An interval is exported by one run at a time.
create unique index batch_export_runs_active
  on batch_export_runs (project_id, batch_export_id, data_interval_start, data_interval_end) nulls not distinct
  where status in ('Starting', 'Running');
create index batch_export_runs_created_at on batch_export_runs (project_id, batch_export_id, created_at, id);
create index batch_export_runs_interval on batch_export_runs (project_id, batch_export_id, data_interval_end, id);
create index batch_export_runs_backfill on batch_export_runs (project_id, backfill_id) where backfill_id is not null;

create table batch_export_backfills (
  project_id integer not null,
  id uuid not null,
  batch_export_id uuid not null,
  workflow_id text not null,
  status text not null check (status in ('Starting', 'Running', 'Completed', 'Failed', 'FailedRetryable', 'Cancelled',
    'Terminated', 'TimedOut', 'ContinuedAsNew')),
  start_at timestamptz,
  end_at timestamptz,
  -- Where it really begins: at the first data.
  adjusted_start_at timestamptz,
  -- How many intervals it has.
  total_runs integer,
  total_records_count bigint,
  latest_error text,
  created_at timestamptz not null default clock_timestamp(),
  last_updated_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  primary key (project_id, id)
);
create unique index batch_export_backfills_active
  on batch_export_backfills (project_id, batch_export_id, start_at, end_at) nulls not distinct
  where status in ('Starting', 'Running');
create index batch_export_backfills_created_at on batch_export_backfills (project_id, batch_export_id, created_at, id);

-- What exports and their runs tell the people who look after them.
create table batch_export_logs (
  project_id integer not null,
  id bigint generated always as identity,
  batch_export_id uuid not null,
  run_id uuid,
  timestamp timestamptz not null default clock_timestamp(),
  level text not null check (level in ('DEBUG', 'INFO', 'LOG', 'WARNING', 'ERROR')),
  message text not null,
  primary key (project_id, id)
);
create index batch_export_logs_timestamp on batch_export_logs (project_id, batch_export_id, timestamp, id);
create index batch_export_logs_run on batch_export_logs (project_id, run_id, id) where run_id is not null;

-- Ends of runs and the rows that they exported, counted by the hour.
create table batch_export_metrics (
  project_id integer not null,
  batch_export_id uuid not null,
  hour timestamptz not null,
  kind text not null,
  name text not null,
  count bigint not null,
  primary key (project_id, batch_export_id, hour, kind, name)
);
