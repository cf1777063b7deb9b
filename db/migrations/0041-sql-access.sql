-- What people read with a SQL client, see docs/sql-access.md. db/roles/sql-access.ts gives their roles the rights on it.

-- Which project a login role sees. The policies look here by the name of the current user, so that no setting changes what a
-- role sees. Only the owner writes this table, and a role reads only its own row.
create table sql_logins (
  role name primary key,
  project_id integer not null,
  -- The database for which the role was made. A copy of this database, or a restored one, shows the role nothing.
  database oid not null,
  -- How many connections the role may have at once.
  connections integer not null,
  created_at timestamptz not null default now(),
  -- Since when the role sees nothing and is to be dropped: its access was revoked, or its project deleted.
  closed_at timestamptz
);
create unique index sql_logins_project on sql_logins (project_id, database) where closed_at is null;
alter table sql_logins enable row level security;

-- Without a policy, a role that does not own them sees nothing of these tables.
alter table group_types enable row level security;
alter table cohorts enable row level security;
alter table definitions enable row level security;

-- Every view shows what the user who asks may see: policies of the tables decide, and no view has a condition for that.
create schema sluice_sql;

create view sluice_sql.events with (security_invoker = true) as
select e.uuid, e.event, e.timestamp, e.distinct_id,
  -- Whose the distinct id is now: people who were merged count once.
  coalesce(d.person_id, e.person_id) as person_id,
  e.properties, e.session_id, e.window_id, e.group_0, e.group_1, e.group_2, e.group_3, e.group_4, e.elements_chain,
  -- The person as it was when the event came in.
  e.person_id as event_person_id, e.person_properties as event_person_properties,
  e.created_at, e.inserted_at
from events e
left join person_distinct_ids d on d.project_id = e.project_id and d.distinct_id = e.distinct_id collate "C";

create view sluice_sql.persons with (security_invoker = true) as
select id, properties, is_identified, created_at, changed_at as updated_at from persons;

create view sluice_sql.person_distinct_ids with (security_invoker = true) as
select distinct_id, person_id from person_distinct_ids;

create view sluice_sql.groups with (security_invoker = true) as
select g.group_type_index, t.group_type, g.group_key, g.properties, g.created_at, g.updated_at
from groups g
left join group_types t on t.project_id = g.project_id and t.group_type_index = g.group_type_index;

create view sluice_sql.group_types with (security_invoker = true) as
select group_type_index, group_type, name_singular, name_plural from group_types;

create view sluice_sql.cohorts with (security_invoker = true) as
select id, name, description, is_static, count, counted_at, created_at from cohorts where not deleted;

create view sluice_sql.cohort_people with (security_invoker = true) as
select p.cohort_id, p.person_id, p.added_at
from cohort_people p
join cohorts c on c.project_id = p.project_id and c.id = p.cohort_id and not c.deleted;

create view sluice_sql.definitions with (security_invoker = true) as
select kind, case when group_type_index >= 0 then group_type_index end as group_type_index, name, property_type, created_at, last_seen_at
from definitions;
