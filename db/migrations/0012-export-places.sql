-- Who may export or read rows now, and who waits for that: the places of the workers are few.

-- The places of each worker, as long as it says that it lives.
create table batch_export_workers (
  id uuid not null,
  lane text not null check (lane in ('exports', 'backfills')),
  places integer not null check (places >= 0),
  alive_until timestamptz not null,
  primary key (id, lane)
);

-- A run or a verification that has a place, waits for one, or pauses between two attempts. It goes when the work is over.
create table batch_export_places (
  project_id integer not null,
  -- Of the run; of a verification, the id of the run of its workflow.
  id uuid not null,
  batch_export_id uuid not null,
  kind text not null check (kind in ('run', 'verification')),
  lane text not null check (lane in ('exports', 'backfills')),
  -- Who is told when a place is free.
  workflow_id text not null,
  -- How many attempts have begun, and whether one of them failed.
  attempts integer not null default 0,
  failed boolean not null default false,
  -- Of the attempt that has the place. Whoever takes the place away changes it.
  fence bigint not null,
  -- Set: it has a place until then. With a worker, an attempt works there; without one, the place is kept for it.
  leased_until timestamptz,
  worker uuid,
  -- Set: it waits. It stands in the queue as if it had come at `queued_at`, which is later if it missed its turn.
  waiting_since timestamptz,
  queued_at timestamptz,
  -- Until then its activity itself looks whether a place is kept for it. After that its workflow has to be told.
  asking_until timestamptz,
  primary key (project_id, id),
  check (worker is null or (leased_until is not null and waiting_since is null)),
  check ((waiting_since is null) = (queued_at is null))
);
create index batch_export_places_taken on batch_export_places (lane, leased_until) where leased_until is not null;
create index batch_export_places_queue on batch_export_places (lane, queued_at) where waiting_since is not null;
create index batch_export_places_failed on batch_export_places (project_id, batch_export_id) where failed;

-- When an export last got a place. Projects, and the exports of a project, take turns, also where each has one place or
-- none.
create table batch_export_turns (
  project_id integer not null,
  lane text not null check (lane in ('exports', 'backfills')),
  batch_export_id uuid not null,
  given_at timestamptz not null,
  primary key (project_id, lane, batch_export_id)
);
