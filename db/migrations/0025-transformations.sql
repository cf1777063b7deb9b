-- Transformations: functions that change or drop events before they are stored.

-- What happens to an event that a transformation fails on. Null: the function is no transformation.
alter table functions add column on_error text check (on_error in ('pass', 'drop', 'refuse'));
update functions set on_error = case
    when template_id in ('template-pii-hashing', 'template-hash-properties', 'template-filter-properties',
      'template-url-masking', 'template-ip-anonymization') then 'refuse'
    else 'pass'
  end
where type = 'transformation';

-- The version of the project's enabled transformations: each change makes a larger one. Null: there are none. Processes
-- that receive events learn of it together with the project.
create sequence transformation_versions;
alter table projects add column transformations bigint;
update projects p set transformations = nextval('transformation_versions')
where exists (
  select from functions f
  where f.project_id = p.id and f.type = 'transformation' and f.enabled and f.deleted_at is null);

create function note_transformations() returns trigger language plpgsql as $$
begin
  update projects p set transformations = case
      when exists (
        select from functions f
        where f.project_id = p.id and f.type = 'transformation' and f.enabled and f.deleted_at is null)
      then nextval('transformation_versions')
    end
  where p.id in (
    case when new.type = 'transformation' then new.project_id end,
    case when old.type = 'transformation' then old.project_id end);
  return null;
end $$;
create trigger functions_transforming after insert or update or delete on functions
  for each row execute function note_transformations();

drop trigger tell_of_project on projects;
create trigger tell_of_project after insert or delete or update of api_token, anonymize_ips, transformations on projects
  for each row execute function tell_of_project();

-- What transformations changed in an event: names only, no values. Null: nothing.
alter table events add column transformations json;
