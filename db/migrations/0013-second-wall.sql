-- What a role sees that does not own the tables: the rows of the project that its transaction names, and none without.
-- The first wall is the project's condition in each statement. This one holds for the role that reads what users write.

-- A subquery is computed once for each statement, and not for each row.
do $$
declare
  one text;
begin
  foreach one in array array['events', 'persons', 'person_distinct_ids', 'deleted_distinct_ids', 'groups'] loop
    execute format('alter table %I enable row level security', one);
    execute format(
      $policy$create policy of_project on %I for select
      using (project_id = (select nullif(current_setting('sluice.project', true), '')::integer))$policy$, one);
  end loop;
end $$;

-- As before, but with the rights of who asks, and from the events alone: a reader has no right on projects.
create or replace view sessions with (security_invoker = true) as
select wanted.project_id, s.*
from (
  select project_id, array_agg(id) as ids, array_agg(session_near(session_span(id), happened)) as near
  from (
    select e.project_id, e.session_id as id, array_agg(e.timestamp) as happened from events e
    where e.session_id is not null group by e.project_id, e.session_id) as found
  group by project_id) as wanted
cross join lateral sessions_by_id(wanted.project_id, wanted.ids, wanted.near) as s;

-- The roles of this database, see db/roles. Their names begin with sluice_ and the tag. Only the owner reads this table.
create table database_roles (
  only_row boolean primary key default true check (only_row),
  tag text not null default left(replace(gen_random_uuid()::text, '-', ''), 10),
  server_password text not null default replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''),
  reader_password text not null default replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', '')
);
insert into database_roles default values;
