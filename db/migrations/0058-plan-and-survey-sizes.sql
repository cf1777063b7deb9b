-- How large what people plan and ask is, so that a project has a bounded amount of it and lists end in time.
alter table feature_flag_scheduled_changes add column payload_bytes integer not null default 0;
create function note_payload_bytes() returns trigger language plpgsql as $$
begin
  new.payload_bytes := octet_length(new.payload::text);
  return new;
end $$;
create trigger note_bytes before insert or update of payload on feature_flag_scheduled_changes
  for each row execute function note_payload_bytes();
update feature_flag_scheduled_changes set payload_bytes = octet_length(payload::text);

alter table surveys add column document_bytes integer not null default 0;
create function note_survey_bytes() returns trigger language plpgsql as $$
begin
  new.document_bytes := octet_length(new.description) + octet_length(new.questions::text)
    + coalesce(octet_length(new.conditions::text), 0) + coalesce(octet_length(new.appearance::text), 0);
  return new;
end $$;
create trigger note_bytes before insert or update of description, questions, conditions, appearance on surveys
  for each row execute function note_survey_bytes();
update surveys set document_bytes = octet_length(description) + octet_length(questions::text)
  + coalesce(octet_length(conditions::text), 0) + coalesce(octet_length(appearance::text), 0);
