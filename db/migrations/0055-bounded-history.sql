-- Versions of things, plans that are over, and the activity log are kept within bounds, see docs/operations.md. Maintenance looks
-- at projects in which something was added lately.
create index feature_flag_revisions_made on feature_flag_revisions (changed_at);
create index cohort_revisions_made on cohort_revisions (changed_at);
create index function_revisions_made on function_revisions (created_at);
create index functions_deleted on functions (deleted_at) where deleted_at is not null;
create index feature_flag_scheduled_changes_over on feature_flag_scheduled_changes (executed_at)
  where executed_at is not null;
create index feature_flag_rollouts_over on feature_flag_rollouts (finished_at) where finished_at is not null;

-- Only a transaction that says that it forgets may take something out of the activity log.
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
  if current_setting('sluice.forgets', true) = tg_table_name then
    if tg_op = 'DELETE' then
      return old;
    end if;
    return new;
  end if;
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;
