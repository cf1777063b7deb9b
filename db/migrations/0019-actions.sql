-- Actions: names for events that match one of several steps. Filters of functions and exports refer to them by their ids.

create table actions (
  project_id integer not null,
  -- Unique in the whole installation.
  id integer not null generated always as identity,
  -- Null or empty: it has no name. Other names are unique among the actions of a project that are not deleted, see
  -- actions/commands/names.ts. Moving projects into each other may join two of the same name.
  name text,
  description text not null default '',
  tags text[] not null default '{}',
  post_to_slack boolean not null default false,
  slack_message_format text not null default '',
  steps jsonb not null,
  -- What matches its events, compiled from the steps. It is only read as a whole.
  bytecode json not null,
  pinned_at timestamptz,
  created_at timestamptz not null default clock_timestamp(),
  -- The id of a user, who may be gone.
  created_by integer,
  updated_at timestamptz not null default clock_timestamp(),
  deleted boolean not null default false,
  -- Grows with each change of what the action matches. Others compare it with the version that they have compiled.
  version integer not null default 1,
  -- When that changed last.
  changed_at timestamptz not null default clock_timestamp(),
  primary key (project_id, id)
);
create index actions_created_at on actions (project_id, created_at desc, id) where not deleted;
create index actions_name on actions (project_id, name) where not deleted;
