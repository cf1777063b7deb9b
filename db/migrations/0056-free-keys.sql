-- The key of a flag that moves to a project which has its key. It is found in one look, however many such keys are taken.
create or replace function free_flag_key() returns trigger language plpgsql as $$
declare
  original text := new.key;
  base text := left(new.key, 390);
begin
  if new.deleted then
    return new;
  end if;
  with taken as materialized (
    select key from feature_flags where project_id = new.project_id and not deleted and id <> new.id
      and (key = original or (key >= base || '-' and key < base || '.')))
  select candidate into new.key from (
    select original as candidate, 1 as number
    union all
    select base || '-' || n, n from generate_series(2, (select count(*)::int from taken) + 2) as n) as candidates
  where candidate collate "C" not in (select key from taken) order by number limit 1;
  return new;
end $$;
