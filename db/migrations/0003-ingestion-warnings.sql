-- What was skipped or changed among the events that a project sent: one row for each reason and day, with a sample.
create table ingestion_warnings (
  project_id integer not null,
  day date not null,
  reason text not null,
  -- Whether the events were left out or only changed.
  effect text not null check (effect in ('skipped', 'changed')),
  count bigint not null,
  first_seen_at timestamptz not null,
  last_seen_at timestamptz not null,
  sample jsonb not null,
  primary key (project_id, day, reason)
);
