-- What the filters of a cohort name, and how large they are, so that a change of one cohort reads the filters of no other.
alter table cohorts
  add column asks integer[] not null default '{}',
  add column filter_bytes integer not null default 0;

-- The ids of the cohorts that filters name: in a tree of `values`, nodes about cohorts.
create function cohorts_in_filters(filters json) returns integer[] language sql immutable as $$
  with recursive nodes as (
    select filters -> 'properties' as node
    union all
    select child from nodes, json_array_elements(
      case when json_typeof(node -> 'values') = 'array' then node -> 'values' end) as child),
  named as (
    select node ->> 'value' as id from nodes
    where json_typeof(node) = 'object' and json_typeof(node -> 'values') is distinct from 'array'
      and node ->> 'type' in ('cohort', 'static-cohort')),
  ids as (
    select case when id ~ '^[0-9]{1,10}$' and id::bigint < 2147483648 then id::integer end as id from named)
  select coalesce(array_agg(distinct id), '{}') from ids where id is not null
$$;

create function note_cohort_filters() returns trigger language plpgsql as $$
begin
  new.filter_bytes := octet_length(new.filters::text);
  new.asks := cohorts_in_filters(new.filters);
  return new;
end $$;
create trigger note_filters before insert or update of filters on cohorts
  for each row execute function note_cohort_filters();
update cohorts set filter_bytes = octet_length(filters::text), asks = cohorts_in_filters(filters);
