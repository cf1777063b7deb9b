-- How the invocations of a function are delivered: how many at once, how often, in which order, and how they are repeated.

-- See functions/rules/policy.ts. Null: as all others.
alter table functions add column delivery json;
-- Whether nothing is attempted. What waits stays where it is.
alter table functions add column paused boolean not null default false;
-- Functions whose invocations are not simply taken when they are due.
create index functions_governed on functions (project_id, id)
  where (delivery is not null or paused) and enabled and deleted_at is null;

-- Whether the attempt in progress counts for the policy of the function. Only rows of such functions are in the index.
alter table function_queue add column held boolean not null default false;
create index function_queue_held on function_queue (project_id, function_id, due_at) where held;
-- Where the order matters: the invocations with the same line run one after the other. Null: not looked at so far, or the
-- order does not matter.
alter table function_queue add column line text;
create index function_queue_lines on function_queue (project_id, function_id, line, seq) where line is not null;

-- What the workers share about functions with a policy. Whoever claims invocations of such a function locks its row.
create table function_paces (
  project_id integer not null,
  function_id uuid not null,
  -- When the next attempt may begin, because of the rate.
  next_at timestamptz not null default '-infinity',
  -- Invocations that were queued until then have their line, and when that was last made sure of for all of them.
  lined_until timestamptz not null default '-infinity',
  lined_fully_at timestamptz not null default '-infinity',
  -- Which change of the function was in force then.
  lined_for timestamptz not null default '-infinity',
  primary key (project_id, function_id)
) with (fillfactor = 50);
