-- Reruns: a function runs again for its invocations that have ended. They are replays of a third kind.

-- Which ended invocations; see functions/rules/rerun.ts. `after` and `before` are times of their end. Null: not a rerun.
alter table function_replays add column selection json;
-- Which version runs. Null: of each invocation the one that ran before.
alter table function_replays add column version integer;

-- A function with so many waiting invocations that further ones are kept as positions only: where their events are.
create table function_floods (
  project_id integer not null,
  function_id uuid not null,
  since timestamptz not null default clock_timestamp(),
  -- When it was last looked at whether there is room in the queue.
  looked_at timestamptz not null default clock_timestamp(),
  primary key (project_id, function_id)
);
create table function_positions (
  id bigint generated always as identity primary key,
  project_id integer not null,
  function_id uuid not null,
  version integer not null,
  -- The events, in the order in which their invocations are queued, and the mapping of each. -1: the function has none.
  uuids uuid[] not null,
  timestamps timestamptz[] not null,
  mappings smallint[] not null,
  count integer not null,
  -- Whether the function looks at the groups of its events.
  with_groups boolean not null,
  created_at timestamptz not null default clock_timestamp()
);
create index function_positions_next on function_positions (project_id, function_id, id);

-- Events that were deleted by retention before functions had them.
create table function_losses (
  project_id integer not null,
  -- Null: it was not known yet for which functions they are.
  function_id uuid,
  -- The week of events.
  partition text not null,
  events bigint not null,
  lost_at timestamptz not null default clock_timestamp()
);
create index function_losses_newest on function_losses (project_id, lost_at);

-- Invocations that are delivered together. Once they are, they stay together. Null: each goes alone.
alter table function_queue add column batch uuid;
create index function_queue_batches on function_queue (project_id, function_id, due_at) where batch is not null;
create index function_queue_batch on function_queue (batch) where batch is not null;
