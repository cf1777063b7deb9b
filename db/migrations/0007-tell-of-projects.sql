-- Every process that remembers what belongs to a project key forgets it the moment the change is committed, whoever
-- made it. What is told is the key, the old one and the new one: keys nobody has are remembered too.
create function tell_of_project() returns trigger language plpgsql as $$
begin
  if tg_op <> 'INSERT' then
    perform pg_notify('sluice_project_keys', old.api_token);
  end if;
  if tg_op <> 'DELETE' and (tg_op = 'INSERT' or new.api_token <> old.api_token) then
    perform pg_notify('sluice_project_keys', new.api_token);
  end if;
  return null;
end $$;

create trigger tell_of_project after insert or delete or update of api_token, anonymize_ips on projects
  for each row execute function tell_of_project();
