-- Organizations, people, projects and keys; the audit trail; what is left to delete.
-- Tables of a project lead their keys with project_id and reference nothing outside the project, so that they
-- can be distributed by it. Organizations, users and keys are few and stay whole on every node.

create table organizations (
  id uuid primary key,
  name text not null,
  slug text not null unique,
  logo_media_id uuid,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  customer_id text,
  is_member_join_email_enabled boolean not null default true,
  enforce_2fa boolean,
  members_can_invite boolean default true,
  members_can_use_personal_api_keys boolean not null default true,
  is_ai_data_processing_approved boolean,
  default_experiment_stats_method text default 'bayesian',
  environments_rollback_at timestamptz
);

create table users (
  id integer generated always as identity primary key,
  uuid uuid not null unique,
  distinct_id text not null unique,
  email text not null,
  first_name text not null default '',
  last_name text not null default '',
  is_email_verified boolean,
  is_active boolean not null default true,
  is_staff boolean not null default false,
  role_at_organization text,
  theme_mode text,
  hedgehog_config jsonb,
  current_organization_id uuid,
  current_project_id integer,
  date_joined timestamptz not null default now()
);
create unique index users_email on users (lower(email));

create table organization_memberships (
  id uuid primary key,
  organization_id uuid not null references organizations (id) on delete cascade,
  user_id integer not null references users (id) on delete cascade,
  level smallint not null check (level in (1, 8, 15)),
  joined_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (organization_id, user_id)
);
create index organization_memberships_user on organization_memberships (user_id);
-- An organization has one owner.
create unique index organization_memberships_owner on organization_memberships (organization_id) where level = 15;

create table projects (
  id integer generated always as identity primary key,
  uuid uuid not null unique,
  organization_id uuid not null references organizations (id) on delete cascade,
  name text not null,
  api_token text not null unique,
  timezone text not null default 'UTC',
  is_demo boolean not null default false,
  completed_snippet_onboarding boolean not null default false,
  has_completed_onboarding_for jsonb not null default '{}',
  ingested_event boolean not null default false,
  access_control boolean not null default false,
  app_urls jsonb not null default '[]',
  anonymize_ips boolean not null default false,
  test_account_filters jsonb not null default '[]',
  flags_persistence_default boolean,
  secret_api_token text unique,
  secret_api_token_backup text unique,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index projects_organization on projects (organization_id, id);

-- A project has at most five types of groups; events name them by their index.
create table group_types (
  project_id integer not null,
  group_type_index smallint not null check (group_type_index between 0 and 4),
  group_type text not null,
  name_singular text,
  name_plural text,
  created_at timestamptz not null default now(),
  primary key (project_id, group_type_index),
  unique (project_id, group_type)
);

create table personal_api_keys (
  id text primary key,
  user_id integer not null references users (id) on delete cascade,
  label text not null,
  secure_value text not null unique,
  mask_value text not null,
  scopes text[] not null,
  scoped_teams integer[] not null default '{}',
  scoped_organizations uuid[] not null default '{}',
  created_at timestamptz not null default now(),
  last_used_at timestamptz,
  last_rolled_at timestamptz,
  expires_at timestamptz
);
create index personal_api_keys_user on personal_api_keys (user_id, created_at desc);

create table wizard_sessions (
  hash text primary key,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  user_id integer references users (id) on delete cascade,
  project_id integer
);
create index wizard_sessions_expiry on wizard_sessions (expires_at);

-- Append-only: who changed what. Rows outlive what they tell of.
create table activity_log (
  id uuid primary key,
  organization_id uuid,
  project_id integer,
  at timestamptz not null default now(),
  user_id integer,
  personal_api_key_id text,
  ip inet,
  request_id text,
  scope text not null,
  item_id text not null,
  activity text not null,
  detail jsonb not null default '{}'
);
create index activity_log_organization on activity_log (organization_id, at desc, id);
create index activity_log_project on activity_log (project_id, at desc, id) where project_id is not null;

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger activity_log_append_only before update or delete on activity_log
  for each row execute function refuse_change();

-- A deleted project is gone from `projects` at once; its schedules and its data follow, by the maintenance workflow.
create table project_deletions (
  project_id integer primary key,
  organization_id uuid not null,
  requested_at timestamptz not null default now(),
  schedules_stopped_at timestamptz,
  data_deleted_at timestamptz
);
create index project_deletions_open on project_deletions (requested_at) where data_deleted_at is null;

-- Requests counted per key; the layout is the one rate-limiter-flexible works on.
create table rate_limits (
  key varchar(255) primary key,
  points integer not null default 0,
  expire bigint
);
