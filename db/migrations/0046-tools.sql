-- What tools of others keep here: annotations of charts, and settings of projects that change nothing.

create table annotations (
  project_id integer not null,
  -- Unique in the whole installation.
  id integer not null generated always as identity,
  content text,
  -- The time that it is about.
  date_marker timestamptz,
  scope text not null check (scope in ('dashboard_item', 'dashboard', 'project', 'organization', 'recording')),
  creation_type text not null check (creation_type in ('USR', 'GIT')),
  -- What it is about in a tool that has charts: Sluice has none, and keeps the numbers.
  dashboard_item integer,
  dashboard_id integer,
  deleted boolean not null default false,
  -- The id of a user, who may be gone.
  created_by integer,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, id)
);
create index annotations_of_organizations on annotations (project_id) where scope = 'organization' and not deleted;

-- Settings of products that Sluice does not have, so that a tool that sets one finds it set.
alter table projects add column kept_settings jsonb not null default '{}';
