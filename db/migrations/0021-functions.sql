-- Functions: programs that turn an event into an effect.

create table functions (
  project_id integer not null,
  id uuid not null,
  type text not null,
  name text,
  description text not null,
  icon_url text,
  template_id text,
  enabled boolean not null,
  -- The place among the functions of a type that run one after the other. Null: it has none.
  execution_order smallint check (execution_order >= 0),
  hog text not null,
  -- Text that was checked to be JSON. The order of keys matters: inputs are stored in the order of their evaluation.
  inputs_schema json not null,
  -- Without the secret ones, each with its bytecode.
  inputs json not null,
  filters json not null,
  masking json,
  mappings json,
  -- The secret inputs and those of the mappings: one JSON object, sealed for `functions/<id>/secrets`. Null: none.
  secrets text,
  -- Which inputs are secret and have a value: of the function, and of each mapping.
  secret_keys json not null default '{"inputs":[],"mappings":[]}',
  bytecode json,
  -- What browsers run. Null: it does not run in browsers.
  transpiled text,
  -- Sentences about what the program calls although nothing has this name.
  warnings json not null default '[]',
  -- Counts the changes of what the function does.
  version integer not null default 1,
  -- What the filters take from elsewhere, as of the last compilation: the project's conditions for test accounts, and
  -- the versions of actions. Null: they take nothing.
  compiled_from json,
  -- Why the function could not be compiled again after something that it names had changed. The last version that
  -- could be compiled goes on. Null: it is up to date.
  compile_error text,
  created_by integer references users (id) on delete set null,
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  -- Set: only undeleting it sees it.
  deleted_at timestamptz,
  primary key (project_id, id)
);
create index functions_in_order on functions (project_id, execution_order nulls last, updated_at desc, id)
  where deleted_at is null;

-- Those that maintenance compares with what they were compiled from.
create index functions_dependent on functions (project_id, id)
  where compiled_from is not null and deleted_at is null;

-- What programs print, and what became of them.
create table function_logs (
  project_id integer not null,
  function_id uuid not null,
  instance_id uuid not null,
  timestamp timestamptz not null,
  level text not null,
  message text not null
);
create index function_logs_newest on function_logs (project_id, function_id, timestamp desc);

-- Counts of what became of invocations, by hour.
create table function_metrics (
  project_id integer not null,
  function_id uuid not null,
  hour timestamptz not null,
  kind text not null,
  name text not null,
  count bigint not null,
  primary key (project_id, function_id, hour, kind, name)
);
