-- A condition set for everybody that names a variant decides nothing either.
create or replace function note_flag_filters() returns trigger language plpgsql as $$
declare
  open constant jsonpath := 'lax $.groups[*] ? (!exists(@.properties[*])
      && (!exists(@.rollout_percentage) || @.rollout_percentage == null || @.rollout_percentage >= 100))';
begin
  new.filter_bytes := octet_length(new.filters::text);
  select coalesce(array_agg(distinct id), '{}') into new.asks from (
    select case when value #>> '{}' ~ '^[0-9]{1,10}$' and (value #>> '{}')::bigint < 2147483648
      then (value #>> '{}')::integer end as id
    from jsonb_path_query(new.filters::jsonb, 'lax $.groups[*].properties[*] ? (@.type == "flag").key') as value) named
  where id is not null;
  select coalesce(array_agg(distinct id), '{}') into new.asks_cohorts from (
    select case when value #>> '{}' ~ '^[0-9]{1,10}$' and (value #>> '{}')::bigint < 2147483648
      then (value #>> '{}')::integer end as id
    from jsonb_path_query(new.filters::jsonb, 'lax $.groups[*].properties[*] ? (@.type == "cohort").value') as value) named
  where id is not null;
  new.for_everybody := jsonb_path_exists(new.filters::jsonb, open)
    and (not jsonb_path_exists(new.filters::jsonb, 'lax $.multivariate.variants[*]')
      or jsonb_path_exists(new.filters::jsonb, 'lax $.multivariate.variants[*] ? (@.rollout_percentage >= 100)')
      or exists (select from jsonb_path_query(new.filters::jsonb, open) as one where one ->> 'variant' <> ''));
  return new;
end $$;
update feature_flags set filters = filters where filters::jsonb @? '$.groups[*].variant ? (@.type() == "string")';

-- How far the count of the cohorts of a project is. A count takes its time in pieces, and goes on where it ended.
create table cohort_counts (
  project_id integer not null primary key,
  -- When it was worked on last. Null: never.
  worked_at timestamptz,
  -- As of when the running count decides. Null: none is running.
  started_at timestamptz,
  -- The last person whom it has decided. Null: none yet.
  after_person uuid,
  -- How many members each cohort has among those who are decided.
  counts jsonb not null default '{}',
  -- Whether a cohort may get other members because time passes. Null: nobody has looked yet.
  looks_at_time boolean,
  -- When a static cohort got or lost members last.
  members_changed_at timestamptz
);

-- A cohort that comes to another project has other members there.
create function forget_cohort_count() returns trigger language plpgsql as $$
begin
  new.counted_at := null;
  return new;
end $$;
create trigger forget_count before update of project_id on cohorts
  for each row when (old.project_id <> new.project_id) execute function forget_cohort_count();

-- A survey may be asked again and again: so often, after so many days each time.
alter table surveys
  add column iteration_count integer check (iteration_count >= 0),
  add column iteration_frequency_days integer check (iteration_frequency_days >= 0),
  -- Which one runs, counted from 1, and since when. Null: it is asked once, or has not begun.
  add column current_iteration integer,
  add column current_iteration_start_date timestamptz,
  drop constraint surveys_schedule_check,
  add constraint surveys_schedule_check check (schedule in ('once', 'recurring', 'always'));
create index surveys_repeated on surveys (project_id)
  where current_iteration is not null and end_date is null and not archived;
