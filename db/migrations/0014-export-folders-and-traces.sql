-- Where exports write, and what their attempts may leave there.

-- The folder below SLUICE_EXPORT_ROOT that a `File` export does not leave. Null: the whole root, as it was for all
-- exports before there were such folders.
alter table batch_exports add column folder text;

-- Attempts at runs that have begun to write files and have not completed. What such an attempt published, or what of
-- it arrives late, is removed when the attempt is over. A row has all that this needs, because the export may be
-- changed, moved or deleted meanwhile, with its project.
create table batch_export_traces (
  -- When the attempt began. An export can be moved to another project since.
  project_id integer not null,
  batch_export_id uuid not null,
  -- Of the attempt.
  fence bigint not null,
  run_id uuid not null,
  data_interval_start timestamptz,
  data_interval_end timestamptz not null,
  -- The destination as it was when the attempt began, with its secrets sealed as in batch_exports.
  destination_type text not null,
  config jsonb not null,
  secrets text,
  folder text,
  manifest_key text not null,
  -- By key, the marks of the files that the attempt publishes. Null: it has published nothing.
  marks jsonb,
  begun_at timestamptz not null default clock_timestamp(),
  -- Since when the attempt is known to be over. Null: it is at work, for all that is known.
  over_since timestamptz,
  -- How often the destination was looked at since.
  looks integer not null default 0,
  next_look_at timestamptz not null default clock_timestamp(),
  -- Until then somebody removes files of the interval, and no attempt at it begins to write.
  leased_until timestamptz,
  lease uuid,
  primary key (project_id, batch_export_id, fence)
);
create unique index batch_export_traces_attempt on batch_export_traces (batch_export_id, fence);
create index batch_export_traces_next_look on batch_export_traces (next_look_at);

-- The files of the completed run were damaged by another run, so the interval is exported again.
alter table batch_export_checks add column damaged boolean not null default false;
