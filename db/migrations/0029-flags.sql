-- Feature flags, and the cohorts of persons that their conditions name.

-- Every change of a definition takes the next stamp, whoever makes it. Processes that remember definitions read only those
-- whose stamp they do not know.
create sequence definition_stamps;

create table feature_flags (
  project_id integer not null,
  -- Unique in the whole installation.
  id integer not null generated always as identity,
  key text collate "C" not null,
  -- What people read about it.
  name text not null default '',
  -- Text that was checked to be JSON. Numbers keep their spelling, and keys their order.
  filters json not null,
  active boolean not null default true,
  archived boolean not null default false,
  deleted boolean not null default false,
  ensure_experience_continuity boolean not null default false,
  is_remote_configuration boolean not null default false,
  has_encrypted_payloads boolean not null default false,
  -- The payloads of a flag that encrypts them: one JSON object, sealed for `feature_flags/<id>/payloads`. Null: none.
  sealed_payloads text,
  evaluation_runtime text not null default 'all' check (evaluation_runtime in ('all', 'client', 'server')),
  bucketing_identifier text not null default 'distinct_id'
    check (bucketing_identifier in ('distinct_id', 'device_id')),
  evaluation_contexts text[] not null default '{}',
  tags text[] not null default '{}',
  -- Counts the changes that people make.
  version integer not null default 1,
  -- Ids of users, who may be gone.
  created_by integer,
  last_modified_by integer,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  stamp bigint not null default 0,
  primary key (project_id, id)
);
create unique index feature_flags_key on feature_flags (project_id, key) where not deleted;
create index feature_flags_created_at on feature_flags (project_id, created_at desc, id desc) where not deleted;

-- A value that a person set by hand for one distinct id. It is decided before all conditions.
create table feature_flag_overrides (
  project_id integer not null,
  flag_id integer not null,
  distinct_id text collate "C" not null,
  -- False, true, or the key of a variant.
  value json not null,
  created_by integer,
  created_at timestamptz not null default clock_timestamp(),
  primary key (project_id, flag_id, distinct_id)
);

-- All versions of a flag. A trigger writes them, so that no way of changing a flag leaves one out.
create table feature_flag_revisions (
  project_id integer not null,
  flag_id integer not null,
  version integer not null,
  changed_at timestamptz not null,
  changed_by integer,
  -- What the flag was from then on.
  document json not null,
  primary key (project_id, flag_id, version)
);

-- The id by which a person is counted to the rollout of a flag, where it is not their distinct id: the one that they had
-- before they were known.
create table feature_flag_hash_keys (
  project_id integer not null,
  person_id uuid not null,
  flag_key text collate "C" not null,
  hash_key text not null,
  primary key (project_id, person_id, flag_key)
);
-- The same, of distinct ids whose person is not stored yet.
create table feature_flag_early_hash_keys (
  project_id integer not null,
  distinct_id text collate "C" not null,
  flag_key text collate "C" not null,
  hash_key text not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (project_id, distinct_id, flag_key)
);
create index feature_flag_early_hash_keys_created_at on feature_flag_early_hash_keys (created_at);

create table cohorts (
  project_id integer not null,
  -- Unique in the whole installation.
  id integer not null generated always as identity,
  name text not null,
  description text not null default '',
  -- Static: the persons in `cohort_people`. Otherwise those that the filters match.
  is_static boolean not null default false,
  filters json not null,
  deleted boolean not null default false,
  version integer not null default 1,
  created_by integer,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  -- How many persons it had when they were counted last. Null: they were never counted.
  count integer,
  counted_at timestamptz,
  -- Why the last count failed. Null: it did not.
  count_error text,
  stamp bigint not null default 0,
  primary key (project_id, id)
);
create index cohorts_created_at on cohorts (project_id, created_at desc, id desc) where not deleted;

create table cohort_revisions (
  project_id integer not null,
  cohort_id integer not null,
  version integer not null,
  changed_at timestamptz not null,
  document json not null,
  primary key (project_id, cohort_id, version)
);

create table cohort_people (
  project_id integer not null,
  cohort_id integer not null,
  person_id uuid not null,
  added_at timestamptz not null default clock_timestamp(),
  primary key (project_id, cohort_id, person_id)
);
create index cohort_people_person on cohort_people (project_id, person_id);

create function stamp_definition() returns trigger language plpgsql as $$
begin
  new.stamp := nextval('definition_stamps');
  return new;
end $$;
create trigger stamp before insert or update of key, filters, active, archived, deleted,
  ensure_experience_continuity, is_remote_configuration, has_encrypted_payloads, sealed_payloads,
  evaluation_runtime, bucketing_identifier, evaluation_contexts, version, project_id
  on feature_flags for each row execute function stamp_definition();
create trigger stamp before insert or update of filters, is_static, deleted, version, project_id
  on cohorts for each row execute function stamp_definition();

-- Two projects that become one may both have a flag of a key. The one that comes gets another.
create function free_flag_key() returns trigger language plpgsql as $$
declare
  original text := new.key;
  number integer := 2;
begin
  while not new.deleted and exists (select from feature_flags
    where project_id = new.project_id and key = new.key and not deleted and id <> new.id) loop
    new.key := left(original, 390) || '-' || number;
    number := number + 1;
  end loop;
  return new;
end $$;
create trigger free_key before update of project_id on feature_flags
  for each row when (old.project_id <> new.project_id) execute function free_flag_key();

create function keep_flag_revision() returns trigger language plpgsql as $$
begin
  insert into feature_flag_revisions (project_id, flag_id, version, changed_at, changed_by, document)
  values (new.project_id, new.id, new.version, clock_timestamp(), new.last_modified_by,
    json_build_object('key', new.key, 'name', new.name, 'filters', new.filters, 'active', new.active,
      'archived', new.archived, 'deleted', new.deleted,
      'ensure_experience_continuity', new.ensure_experience_continuity,
      'is_remote_configuration', new.is_remote_configuration,
      'has_encrypted_payloads', new.has_encrypted_payloads,
      'evaluation_runtime', new.evaluation_runtime, 'bucketing_identifier', new.bucketing_identifier,
      'evaluation_contexts', new.evaluation_contexts, 'tags', new.tags))
  on conflict do nothing;
  return null;
end $$;
create trigger keep_revision after insert or update of version on feature_flags
  for each row execute function keep_flag_revision();

create function keep_cohort_revision() returns trigger language plpgsql as $$
begin
  insert into cohort_revisions (project_id, cohort_id, version, changed_at, document)
  values (new.project_id, new.id, new.version, clock_timestamp(),
    json_build_object('name', new.name, 'is_static', new.is_static, 'filters', new.filters, 'deleted', new.deleted))
  on conflict do nothing;
  return null;
end $$;
create trigger keep_revision after insert or update of version on cohorts
  for each row execute function keep_cohort_revision();

-- Every process that remembers the definitions of a project reads what is new in them when they change.
create function tell_of_definitions() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform pg_notify('sluice_flags', old.project_id::text);
  end if;
  if tg_op <> 'DELETE' and (tg_op = 'INSERT' or new.project_id <> old.project_id) then
    perform pg_notify('sluice_flags', new.project_id::text);
  end if;
  return null;
end $$;
create trigger tell after insert or delete on feature_flags
  for each row execute function tell_of_definitions();
create trigger tell_of_change after update on feature_flags
  for each row when (old.stamp <> new.stamp) execute function tell_of_definitions();
create trigger tell after insert or delete or update on feature_flag_overrides
  for each row execute function tell_of_definitions();
create trigger tell after insert or delete on cohorts
  for each row execute function tell_of_definitions();
create trigger tell_of_change after update on cohorts
  for each row when (old.stamp <> new.stamp) execute function tell_of_definitions();
create trigger tell after insert or delete or update on group_types
  for each row execute function tell_of_definitions();

create function tell_of_flag_settings() returns trigger language plpgsql as $$
begin
  perform pg_notify('sluice_flags', new.id::text);
  return null;
end $$;
create trigger tell_of_flag_settings after update of timezone, api_token, secret_api_token, secret_api_token_backup
  on projects for each row execute function tell_of_flag_settings();

-- What is compiled from texts of users reads the members of the project that its transaction names, and no others.
alter table cohort_people enable row level security;
create policy of_project on cohort_people for select
  using (project_id = (select nullif(current_setting('sluice.project', true), '')::integer));
