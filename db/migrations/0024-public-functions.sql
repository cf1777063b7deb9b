-- Every process that remembers what runs for public requests forgets it the moment that a change is committed. Of
-- functions for browsers the project is told, of those that take requests the function.
create function tell_of_public_function() returns trigger language plpgsql as $$
declare
  row functions;
begin
  foreach row in array array[old, new] loop
    if row.type in ('site_app', 'site_destination') then
      perform pg_notify('sluice_site_functions', row.project_id::text);
    elsif row.type = 'source_webhook' then
      perform pg_notify('sluice_source_webhooks', row.id::text);
    end if;
  end loop;
  return null;
end $$;

create trigger tell_of_public_function
  after insert or delete or update of project_id, name, type, enabled, deleted_at, execution_order, inputs_schema, inputs,
    bytecode, transpiled, secrets
  on functions for each row execute function tell_of_public_function();

-- A request names its function by the id alone.
create index functions_by_id on functions (id) where type = 'source_webhook';
