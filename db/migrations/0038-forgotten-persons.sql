-- Persons that were deleted while functions of their project keep positions. Events of theirs in positions that were kept
-- before are left out. Writing them into each row of positions cost more the more positions there were.
create table function_forgotten_persons (
  project_id integer not null,
  person_id uuid not null,
  forgotten_at timestamptz not null default clock_timestamp(),
  primary key (project_id, person_id)
);
insert into function_forgotten_persons (project_id, person_id)
select distinct project_id, unnest(forgotten) from function_positions;
