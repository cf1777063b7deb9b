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
declare
  who users;
begin
  select * into who from users u where u.id = new.user_id;
  perform note_internal_event(new.project_id, '$activity_log_entry_created',
    coalesce(who.distinct_id, 'project_' || new.project_id),
    json_build_object(
      'id', new.id, 'organization_id', new.organization_id, 'scope', new.scope, 'item_id', new.item_id,
      'activity', new.activity, 'detail', new.detail, 'is_system', new.user_id is null, 'created_at', new.at,
      'user', case when who.id is not null then json_build_object(
        'uuid', who.uuid, 'email', who.email, 'first_name', who.first_name, 'last_name', who.last_name) end),
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
  select f.name, f.type, f.template_id into subject
  from functions f where f.project_id = new.project_id and f.id = new.function_id and f.deleted_at is null;
  if not found then
    return null;
  end if;
  -- Processes that remember functions that take requests must know whether they may run.
  if subject.type = 'source_webhook' then
    perform pg_notify('sluice_source_webhooks', new.function_id::text);
  end if;
  -- Functions that hear of each other must not keep each other busy: that one of them was disabled happens rarely.
  if subject.type = 'internal_destination' and new.state < 3 then
    return null;
  end if;
  perform note_internal_event(new.project_id, 'hog_function_state_change', 'project_' || new.project_id,
    json_build_object(
      'hog_function_id', new.function_id, 'hog_function_name', subject.name, 'hog_function_type', subject.type,
      'hog_function_template_id', subject.template_id, 'state', names[new.state],
      'previous_state', names[case when tg_op = 'INSERT' then 1 else old.state end],
      'disabled_until', new.disabled_until),
    new.function_id);
  return null;
end $$;
create trigger function_state_noted after update on function_states
  for each row when (new.state <> old.state) execute function note_function_state();
create trigger function_state_noted_first after insert on function_states
  for each row when (new.state <> 1) execute function note_function_state();

create function note_failed_export() returns trigger language plpgsql as $$
begin
  perform note_internal_event(new.project_id, '$batch_export_run_failed', 'project_' || new.project_id,
    (select json_build_object(
       'batch_export_id', b.id, 'batch_export_name', b.name, 'model', b.model, 'destination', b.destination_type,
       'run_id', new.id, 'data_interval_start', new.data_interval_start, 'data_interval_end', new.data_interval_end,
       'error', new.latest_error)
     from batch_exports b where b.project_id = new.project_id and b.id = new.batch_export_id),
    null);
  return null;
end $$;
create trigger failed_export_noted after update of status on batch_export_runs
  for each row when (new.status = 'Failed' and old.status <> 'Failed') execute function note_failed_export();
