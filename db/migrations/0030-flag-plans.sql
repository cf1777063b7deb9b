-- What happens to feature flags later: changes at a time, and rollouts that grow step by step. Features that persons choose
-- themselves, and surveys, which flags decide about.

create table feature_flag_scheduled_changes (
  project_id integer not null,
  -- Unique in the whole installation.
  id integer not null generated always as identity,
  flag_id integer not null,
  -- What to do: an object with `operation` and `value`. Numbers keep their spelling.
  payload json not null,
  scheduled_at timestamptz not null,
  -- When it was tried. It is tried once.
  executed_at timestamptz,
  -- Why nothing was changed. Null: it was, or it is still to come.
  failure_reason text,
  -- In whose name it is done: ids of a user and of a key, which may be gone.
  created_by integer,
  key_id text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  -- Whether Temporal has heard of it as it is now.
  is_told boolean not null default false,
  primary key (project_id, id)
);
create index feature_flag_scheduled_changes_due on feature_flag_scheduled_changes (scheduled_at) where executed_at is null;

create table feature_flag_rollouts (
  project_id integer not null,
  id uuid not null,
  flag_id integer not null,
  -- Where the condition set stood, and what it is without its percentage. By this it is found again.
  condition_index integer not null,
  condition json not null,
  from_percentage double precision not null,
  to_percentage double precision not null,
  steps integer not null check (steps > 0),
  -- The first percentage holds from the beginning on, the last one from the end on. A pause moves what is ahead.
  starts_at timestamptz not null,
  ends_at timestamptz not null check (ends_at > starts_at),
  status text not null default 'running' check (status in ('running', 'paused', 'completed', 'cancelled', 'ended')),
  reason text,
  -- The last step that was taken, and the percentage that it set. Null: none yet.
  step integer,
  percentage double precision,
  -- When the next step is due. Null: none is.
  due_at timestamptz,
  paused_at timestamptz,
  created_by integer,
  key_id text,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  finished_at timestamptz,
  is_told boolean not null default false,
  primary key (project_id, id)
);
create unique index feature_flag_rollouts_active on feature_flag_rollouts (project_id, flag_id)
  where status in ('running', 'paused');
create index feature_flag_rollouts_due on feature_flag_rollouts (due_at) where status in ('running', 'paused');
create index feature_flag_rollouts_of_flag on feature_flag_rollouts (project_id, flag_id, created_at desc);

create table early_access_features (
  project_id integer not null,
  id uuid not null,
  flag_id integer not null,
  name text not null,
  description text not null default '',
  stage text not null check (stage in ('draft', 'concept', 'alpha', 'beta', 'general-availability', 'archived')),
  documentation_url text not null default '',
  -- What clients get beside it: an object.
  payload json not null default '{}',
  created_at timestamptz not null default clock_timestamp(),
  primary key (project_id, id)
);
create unique index early_access_features_flag on early_access_features (project_id, flag_id);

create table surveys (
  project_id integer not null,
  id uuid not null,
  name text not null,
  description text not null default '',
  type text not null check (type in ('popover', 'api', 'widget', 'external_survey')),
  schedule text not null default 'once' check (schedule in ('once', 'always')),
  questions json not null default '[]',
  conditions json,
  appearance json,
  -- Flags that decide who sees it: one that somebody chose, one made of `targeting_flag_filters`, and one that leaves out who
  -- has answered.
  linked_flag_id integer,
  targeting_flag_id integer,
  internal_targeting_flag_id integer,
  start_date timestamptz,
  end_date timestamptz,
  archived boolean not null default false,
  responses_limit integer check (responses_limit > 0),
  enable_partial_responses boolean not null default false,
  created_by integer,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, id)
);
create index surveys_created_at on surveys (project_id, created_at desc, id desc);
create index surveys_limited on surveys (project_id)
  where responses_limit is not null and start_date is not null and end_date is null and not archived;

-- What browsers load of a project says whether it has surveys.
create function tell_of_public_offers() returns trigger language plpgsql as $$
begin
  perform pg_notify('sluice_public_offers', coalesce(new.project_id, old.project_id)::text);
  if tg_op = 'UPDATE' and new.project_id <> old.project_id then
    perform pg_notify('sluice_public_offers', old.project_id::text);
  end if;
  return null;
end $$;
create trigger tell after insert or update or delete on surveys
  for each row execute function tell_of_public_offers();
create trigger tell after insert or update or delete on early_access_features
  for each row execute function tell_of_public_offers();
-- Both name flags by their keys.
create trigger tell_of_offers after update of key, active, deleted on feature_flags
  for each row when (old.key <> new.key or old.active <> new.active or old.deleted <> new.deleted)
  execute function tell_of_public_offers();
