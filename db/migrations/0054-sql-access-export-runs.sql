-- The runs of the batch exports of a project, for SQL clients. The exports themselves stay out: their row has sealed secrets.
-- Without a policy, a role that does not own the table sees nothing of it.
alter table batch_export_runs enable row level security;

create view sluice_sql.export_runs with (security_invoker = true) as
select id, batch_export_id as export_id, backfill_id, status, data_interval_start, data_interval_end, records_completed,
  records_failed, bytes_exported, latest_error, created_at, finished_at
from batch_export_runs;
