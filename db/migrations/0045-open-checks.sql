-- Reconciliation asks for each export whether something is open. Nearly always nothing is.
create index batch_export_checks_open on batch_export_checks (project_id, batch_export_id)
  where damaged or state in ('missing', 'differs');
