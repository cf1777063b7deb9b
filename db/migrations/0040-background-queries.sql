-- Queries that are answered in the background (`async`), until their results expire. A process of the API claims one for a time
-- that it renews while it works, so a query of a process that has died is found again.

create table background_queries (
  project_id integer not null,
  id text collate "C" not null check (length(id) between 1 and 200),
  -- What was asked. Null: it has ended.
  request json check ((request is null) = (state in ('completed', 'failed'))),
  state text not null default 'waiting' check (state in ('waiting', 'running', 'completed', 'failed')),
  created_at timestamptz not null default now(),
  -- Not to be claimed before.
  due_at timestamptz not null default now(),
  started_at timestamptz,
  finished_at timestamptz,
  expires_at timestamptz not null,
  -- The claim that may end it. Each claim has an id of its own.
  claim uuid,
  claimed_until timestamptz,
  attempts smallint not null default 0,
  -- Why it failed: {"message", "attr", "reason"}.
  error json,
  -- The result, and its bytes as they are stored. One of another query with the same id has another name.
  result uuid,
  bytes bigint not null default 0,
  primary key (project_id, id),
  unique (project_id, result)
);
create index background_queries_open on background_queries (project_id, created_at) where state in ('waiting', 'running');
create index background_queries_expires on background_queries (expires_at);

-- The results: JSON, compressed by gzip, in parts that are read one after another.
create table background_query_parts (
  project_id integer not null,
  result uuid not null,
  number integer not null,
  part bytea not null,
  primary key (project_id, result, number),
  foreign key (project_id, result) references background_queries (project_id, result) on delete cascade
);
-- It is compressed already.
alter table background_query_parts alter column part set storage external;
