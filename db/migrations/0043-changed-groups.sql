-- What exports of groups read: when a group last changed, and which groups were deleted.

-- The code lists what can be exported.
alter table batch_exports drop constraint batch_exports_model_check;

-- The horizon's time of the last change. Groups from before this column count as changed now: to write down the time of each would
-- hold up ingestion. The default is for processes of an older version, which may run beside this one.
alter table groups add column changed_at timestamptz not null default now();
alter table groups alter column changed_at set default clock_timestamp();
create index groups_changed_at on groups (project_id, changed_at);

-- What groups were last that were deleted, so that exports tell of the deletion and versions go on. A group that comes again has no row
-- here.
create table deleted_groups (
  project_id integer not null,
  group_type_index smallint not null,
  group_key text collate "C" not null,
  -- One more than the last version of the group.
  version bigint not null,
  created_at timestamptz not null,
  -- The horizon's time of the deletion.
  changed_at timestamptz not null,
  primary key (project_id, group_type_index, group_key)
);
create index deleted_groups_changed_at on deleted_groups (project_id, changed_at);
-- db/roles lets the reader see the rows of the project that its transaction names.
alter table deleted_groups enable row level security;
