-- What keeps batch exports complete: since when an interval is due, when there was a pause, what was found when
-- intervals were looked at again; and indexes for deleting what is old.

-- Intervals that ended by then were never scheduled: it did not exist, or was cut into other intervals.
alter table batch_exports add column scheduled_from timestamptz not null default clock_timestamp();
update batch_exports set scheduled_from = created_at;

create function note_cadence_of_export() returns trigger language plpgsql as $$
begin
  new.scheduled_from := clock_timestamp();
  return new;
end $$;

create trigger note_cadence_of_export before update of interval, timezone, interval_offset on batch_exports
  for each row when (old.interval <> new.interval or (new.interval in ('day', 'week')
    and (old.timezone <> new.timezone or old.interval_offset <> new.interval_offset)))
  execute function note_cadence_of_export();

-- Nothing is due while an export is paused. Noted by a trigger, so whoever pauses it.
create table batch_export_pauses (
  project_id integer not null,
  batch_export_id uuid not null,
  paused_at timestamptz not null,
  -- Null: it is paused now.
  resumed_at timestamptz,
  primary key (project_id, batch_export_id, paused_at)
);

create function note_pause_of_export() returns trigger language plpgsql as $$
begin
  if new.paused then
    insert into batch_export_pauses (project_id, batch_export_id, paused_at)
    values (new.project_id, new.id, clock_timestamp());
    return null;
  end if;
  update batch_export_pauses set resumed_at = clock_timestamp()
  where project_id = new.project_id and batch_export_id = new.id and resumed_at is null;
  if not found then
    insert into batch_export_pauses (project_id, batch_export_id, paused_at, resumed_at)
    values (new.project_id, new.id, old.created_at, clock_timestamp());
  end if;
  return null;
end $$;

create trigger note_pause_of_export after update of paused on batch_exports
  for each row when (old.paused <> new.paused) execute function note_pause_of_export();

-- What was found when an interval was compared with what is in the database: the last time.
create table batch_export_checks (
  project_id integer not null,
  batch_export_id uuid not null,
  data_interval_start timestamptz,
  data_interval_end timestamptz not null,
  -- `missing`: no run completed it; `expired`: its rows are past their retention.
  state text not null check (state in ('same', 'differs', 'missing', 'expired')),
  -- The completed run that was compared.
  run_id uuid,
  source_rows bigint,
  -- Of the rows in the database, where they were read.
  content_hash text,
  problem text,
  -- How often it was started again, and when last.
  repairs integer not null default 0,
  repaired_at timestamptz,
  checked_at timestamptz not null default clock_timestamp()
);
create unique index batch_export_checks_interval
  on batch_export_checks (project_id, batch_export_id, data_interval_end, data_interval_start) nulls not distinct;

-- How complete an export is: what the last reconciliation found.
create table batch_export_health (
  project_id integer not null,
  batch_export_id uuid not null,
  missing integer not null,
  late integer not null,
  differs integer not null,
  lag_intervals integer not null,
  lag_seconds bigint not null,
  checked_at timestamptz not null default clock_timestamp(),
  primary key (project_id, batch_export_id)
);

create index batch_export_logs_age on batch_export_logs using brin (timestamp);
create index batch_export_runs_age on batch_export_runs using brin (created_at);
create index batch_export_metrics_age on batch_export_metrics using brin (hour);
