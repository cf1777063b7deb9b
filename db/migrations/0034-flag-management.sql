-- What the filters of a flag name, and how large they are, so that a change of one flag reads the filters of no other.
alter table feature_flags
  add column asks integer[] not null default '{}',
  add column asks_cohorts integer[] not null default '{}',
  add column filter_bytes integer not null default 0,
  -- Whether some condition set is for everybody, with one value for all of them, so that the flag decides nothing.
  add column for_everybody boolean not null default false,
  -- When somebody last asked for the flag by its key, or an SDK said that it did. Null: nobody has yet.
  add column last_called_at timestamptz;

create function note_flag_filters() returns trigger language plpgsql as $$
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
  new.for_everybody := jsonb_path_exists(new.filters::jsonb, 'lax $.groups[*] ? (!exists(@.properties[*])
      && (!exists(@.rollout_percentage) || @.rollout_percentage == null || @.rollout_percentage >= 100))')
    and (not jsonb_path_exists(new.filters::jsonb, 'lax $.multivariate.variants[*]')
      or jsonb_path_exists(new.filters::jsonb, 'lax $.multivariate.variants[*] ? (@.rollout_percentage >= 100)'));
  return new;
end $$;
create trigger note_filters before insert or update of filters on feature_flags
  for each row execute function note_flag_filters();
update feature_flags set filters = filters;

-- The hashes by which the secret tokens of projects are found. Null beside a token: it has not been hashed yet.
alter table projects
  add column secret_api_token_hash text,
  add column secret_api_token_backup_hash text;
create unique index projects_secret_api_token_hash on projects (secret_api_token_hash)
  where secret_api_token_hash is not null;
create unique index projects_secret_api_token_backup_hash on projects (secret_api_token_backup_hash)
  where secret_api_token_backup_hash is not null;

-- What was done to one thing, newest first.
create index activity_log_item on activity_log (project_id, scope, item_id, at desc, id) where project_id is not null;
