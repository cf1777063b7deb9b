-- Integrations: credentials for services, which functions use without seeing them.

create table integrations (
  project_id integer not null,
  -- Unique in the whole installation.
  id integer not null generated always as identity,
  kind text not null,
  -- What of the configuration anybody may see.
  config jsonb not null,
  -- The rest: one JSON object, sealed (secrets/envelope.ts) for `integrations/<id>/secrets`.
  secrets text not null,
  created_at timestamptz not null default clock_timestamp(),
  -- The id of a user, who may be gone.
  created_by integer,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, id)
);
create index integrations_created_at on integrations (project_id, created_at desc, id);
