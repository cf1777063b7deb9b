-- Drafts of functions, which do not run, and revisions: what functions were made of before.

-- Signs the tokens that confirm that somebody has seen what a draft changes.
alter table functions add column publish_key uuid not null default gen_random_uuid();

create table function_drafts (
  project_id integer not null,
  function_id uuid not null,
  -- Program, inputs without the secret ones, filters, masking and mappings, as a user writes them: nothing is compiled.
  content json not null,
  -- The secret inputs that the draft replaces: one JSON object, sealed for `functions/<id>/draft/secrets`. Null: none.
  secrets text,
  -- Which secret inputs the draft replaces: of the function, and of each mapping.
  secret_keys json not null,
  -- The version of the function with which the draft began.
  base_version integer not null,
  updated_at timestamptz not null default clock_timestamp(),
  primary key (project_id, function_id)
);

create table function_revisions (
  project_id integer not null,
  function_id uuid not null,
  -- The version of the function that was made of this.
  version integer not null,
  content json not null,
  -- All secret inputs of that version, sealed for `functions/<id>/revisions/<version>/secrets`. Null: it had none.
  secrets text,
  secret_keys json not null,
  -- Null: the version is older than the first revision, or its author is gone.
  created_by integer references users (id) on delete set null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (project_id, function_id, version)
);
