-- The runtime of functions: what came in, what is to be delivered, and what became of it.

-- When the function was last switched on. It sees events that were stored later. Null: it never was.
alter table functions add column enabled_at timestamptz;
update functions set enabled_at = clock_timestamp() where enabled and deleted_at is null;

create function note_enabling() returns trigger language plpgsql as $$
begin
  if new.enabled and new.deleted_at is null
    and (tg_op = 'INSERT' or not old.enabled or old.deleted_at is not null) then
    new.enabled_at := clock_timestamp();
  end if;
  return new;
end $$;
create trigger functions_enabled before insert or update on functions
  for each row execute function note_enabling();

-- Counts the changes of a project's functions, so that processes know whether what they have in memory is up to date.
create table function_projects (
  project_id integer primary key,
  version bigint not null
);
create function count_function_change() returns trigger language plpgsql as $$
begin
  insert into function_projects as p (project_id, version)
  select distinct changed, 1 from unnest(array[new.project_id, old.project_id]) as changed where changed is not null
  on conflict (project_id) do update set version = p.version + 1;
  return null;
end $$;
create trigger functions_counted after insert or update or delete on functions
  for each row execute function count_function_change();
insert into function_projects (project_id, version) select distinct project_id, 1 from functions;

-- Functions that react to events of their project. Each transaction that stores events asks whether there are any.
create index functions_reacting on functions (project_id)
  where enabled and deleted_at is null and type = 'destination';

-- A transaction that stored events which functions have not seen yet. Its row is written by the transaction itself, and
-- deleted by the one that writes the invocations.
create table function_batches (
  id bigint generated always as identity primary key,
  -- The transaction, as `xmin` of its events.
  xid xid not null,
  -- Events of projects with functions. Historical ones do not count.
  events integer not null,
  projects integer[] not null,
  -- The partition, and between which pages its events most likely lie. Null: unknown.
  partition text not null,
  from_page bigint,
  to_page bigint,
  -- Where else they are found: project, uuid and timestamp of each, in 28 bytes.
  keys bytea not null
);
alter table function_batches alter column keys set storage external;
-- Rows come and go all the time, and dead ones are in the way of those that look for the first.
alter table function_batches set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

-- Events that are left to one project alone, because its filters take long.
create table function_late_batches (
  id bigint generated always as identity primary key,
  project_id integer not null,
  keys bytea not null,
  -- When the project had its last turn with these.
  tried_at timestamptz not null default clock_timestamp()
);
create index function_late_batches_next on function_late_batches (tried_at, id);

-- Invocations that are to be delivered.
create table function_queue (
  seq bigint generated always as identity primary key,
  id uuid not null,
  project_id integer not null,
  function_id uuid not null,
  -- The version of the function that runs.
  version integer not null,
  -- Which of its mappings. Null: it has none.
  mapping smallint,
  -- Where the event is. Null: `globals` has it.
  event_uuid uuid,
  event_timestamp timestamptz,
  distinct_id text,
  person_id uuid,
  -- The groups of the event as they were when it came in. Null: it has none, or the function does not look at them.
  groups json,
  -- What the program sees of an event that is not stored.
  globals json,
  -- The clock and the random numbers of the run.
  clock timestamptz not null,
  seed integer not null,
  created_at timestamptz not null default clock_timestamp(),
  -- When it is next attempted. Of an attempt in progress: when it counts as lost.
  due_at timestamptz not null default clock_timestamp(),
  -- The attempt in progress. Null: none.
  lease uuid,
  -- Attempts of the request at which it is.
  attempt smallint not null default 0,
  -- The answers that the program has had so far, and what was tried: see functions/rules/progress.ts. Null: nothing yet.
  progress json,
  -- The invocation that this one repeats, because somebody asked for it.
  rerun_of uuid
);
create index function_queue_due on function_queue (project_id, function_id, due_at, seq);
create index function_queue_person on function_queue (project_id, person_id) where person_id is not null;
alter table function_queue set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, fillfactor = 80);

-- Invocations that have ended, by the week of their end.
create table function_invocations (
  project_id integer not null,
  id uuid not null,
  function_id uuid not null,
  version integer not null,
  mapping smallint,
  event_uuid uuid,
  event_timestamp timestamptz,
  distinct_id text,
  person_id uuid,
  groups json,
  globals json,
  -- succeeded, failed or cancelled
  status text not null,
  -- Why it failed.
  error text,
  -- The requests with their answers, shortened and without secrets.
  attempts json not null,
  -- When somebody decided that a failed one needs nothing more.
  dismissed_at timestamptz,
  -- When another invocation was made that repeats it, and the one that it repeats.
  rerun_at timestamptz,
  rerun_of uuid,
  created_at timestamptz not null,
  finished_at timestamptz not null
) partition by range (finished_at);
create index function_invocations_newest on function_invocations (project_id, function_id, finished_at desc, id);
create index function_invocations_failed on function_invocations (project_id, function_id, finished_at desc, id)
  where status = 'failed' and dismissed_at is null and rerun_at is null;
create index function_invocations_id on function_invocations (id);
create index function_invocations_event on function_invocations (project_id, event_uuid);
create table function_invocations_default partition of function_invocations default;

-- How many invocations of a key were let through in its window.
create table function_masks (
  project_id integer not null,
  function_id uuid not null,
  key bytea not null,
  ends_at timestamptz not null,
  count bigint not null,
  primary key (project_id, function_id, key)
);
create index function_masks_ended on function_masks (ends_at);

-- What the runs of functions cost lately, and whether they are still run. Functions whose runs cost nothing have no row.
create table function_states (
  project_id integer not null,
  function_id uuid not null,
  -- What was left of the bucket at that time. It fills again by itself.
  tokens double precision not null,
  refilled_at timestamptz not null default clock_timestamp(),
  -- 1 healthy, 2 degraded, 3 disabled until `disabled_until`, 4 disabled until somebody saves the function
  state smallint not null default 1,
  changed_at timestamptz not null default clock_timestamp(),
  disabled_until timestamptz,
  -- When it was disabled before.
  disabled_at timestamptz[] not null default '{}',
  primary key (project_id, function_id)
);
create index function_states_restricted on function_states (project_id) where state > 1;
