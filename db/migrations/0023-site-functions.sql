-- Every process that remembers the functions of a project for browsers forgets them the moment that a change is
-- committed. What is told is the project.
create function tell_of_site_function() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' and old.type in ('site_app', 'site_destination') then
    perform pg_notify('sluice_site_functions', old.project_id::text);
  end if;
  if tg_op <> 'DELETE' and new.type in ('site_app', 'site_destination') then
    perform pg_notify('sluice_site_functions', new.project_id::text);
  end if;
  return null;
end $$;

create trigger tell_of_site_function
  after insert or delete or update of project_id, type, enabled, deleted_at, transpiled, execution_order, secrets
  on functions for each row execute function tell_of_site_function();
