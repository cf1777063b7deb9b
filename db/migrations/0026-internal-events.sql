-- Events of Sluice itself, for functions of the type internal_destination.
create table function_internal_events (
  id bigint generated always as identity primary key,
  project_id integer not null,
  uuid uuid not null default gen_random_uuid(),
  event text not null,
  distinct_id text not null,
  properties json not null,
  -- The function that the event is about. It does not see the event. Null: none.
  about uuid,
  created_at timestamptz not null default clock_timestamp()
);
create index functions_internal on functions (project_id)
  where enabled and deleted_at is null and type = 'internal_destination';

-- Notes an event in the transaction of what it tells of. Where no function wants such events, it costs a look at an index.
create function note_internal_event(project integer, name text, who text, facts json, subject uuid) returns void
language sql as $$
  insert into function_internal_events (project_id, event, distinct_id, properties, about)
  select project, name, who, facts, subject
  where exists (
    select from functions f
    where f.project_id = project and f.enabled and f.deleted_at is null and f.type = 'internal_destination');
$$;

create function note_activity() returns trigger language plpgsql as $$
begin
  perform note_internal_event(new.project_id, '$activity_log_entry_created',
    coalesce((select u.uuid::text from users u where u.id = new.user_id), new.project_id::text),
    json_build_object(
      'id', new.id, 'organization_id', new.organization_id, 'scope', new.scope, 'item_id', new.item_id,
      'activity', new.activity, 'detail', new.detail, 'is_system', new.user_id is null,
      'user', (select json_build_object('uuid', u.uuid, 'email', u.email, 'first_name', u.first_name, 'last_name', u.last_name)
        from users u where u.id = new.user_id),
      'created_at', new.at),
    null);
  return null;
end $$;
create trigger activity_noted after insert on activity_log
  for each row when (new.project_id is not null) execute function note_activity();

create function note_function_state() returns trigger language plpgsql as $$
declare
  names constant text[] := array['healthy', 'degraded', 'disabled_temporarily', 'disabled_permanently'];
  subject record;
begin
  select f.name, f.type into subject from functions f where f.project_id = new.project_id and f.id = new.function_id;
  if not found then
    return null;
  end if;
  -- Processes that remember functions that take requests must know whether they may run.
  if subject.type = 'source_webhook' then
    perform pg_notify('sluice_source_webhooks', new.function_id::text);
  end if;
  perform note_internal_event(new.project_id, '$function_state_changed', new.project_id::text,
    json_build_object(
      'function_id', new.function_id, 'function_name', subject.name, 'function_type', subject.type,
      'state', names[new.state], 'previous_state', names[case when tg_op = 'INSERT' then 1 else old.state end],
      'disabled_until', new.disabled_until),
    new.function_id);
  return null;
end $$;
create trigger function_state_noted after update on function_states
  for each row when (new.state <> old.state) execute function note_function_state();
create trigger function_state_noted_first after insert on function_states
  for each row when (new.state <> 1) execute function note_function_state();
