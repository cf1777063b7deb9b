-- Persons and groups: what events say about who did something.

create table persons (
  project_id integer not null,
  id uuid not null,
  -- When the first event of theirs happened.
  created_at timestamptz not null,
  is_identified boolean not null,
  properties jsonb not null,
  -- One more with each change; of two versions of a person the higher one is the later one.
  version bigint not null,
  -- The horizon's time of the last change, of a mapping to this person too.
  changed_at timestamptz not null,
  primary key (project_id, id)
);
create index persons_changed_at on persons (project_id, changed_at);
create index persons_created_at on persons (project_id, created_at, id);

-- Which person a distinct_id is. It is changed only by who holds the lock on the row of the person it belongs to.
create table person_distinct_ids (
  project_id integer not null,
  distinct_id text collate "C" not null,
  person_id uuid not null,
  -- One more each time that the distinct_id comes to another person.
  version bigint not null,
  changed_at timestamptz not null,
  primary key (project_id, distinct_id)
);
create index person_distinct_ids_person on person_distinct_ids (project_id, person_id);

-- What the distinct_ids of deleted persons were last, so that exports tell of the deletion and versions go on.
create table deleted_distinct_ids (
  project_id integer not null,
  distinct_id text collate "C" not null,
  person_id uuid not null,
  version bigint not null,
  person_version bigint not null,
  person_created_at timestamptz not null,
  changed_at timestamptz not null,
  primary key (project_id, distinct_id)
);
create index deleted_distinct_ids_changed_at on deleted_distinct_ids (project_id, changed_at);

create table groups (
  project_id integer not null,
  group_type_index smallint not null,
  group_key text collate "C" not null,
  id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  properties jsonb not null,
  version bigint not null,
  primary key (project_id, group_type_index, group_key)
);
create unique index groups_id on groups (project_id, id);

-- A third thing that can happen to an event: it is stored, but what it wanted of persons or groups was not done.
alter table ingestion_warnings drop constraint ingestion_warnings_effect_check;
alter table ingestion_warnings add constraint ingestion_warnings_effect_check
  check (effect in ('skipped', 'changed', 'not_applied'));
