-- An export of the whole result of a query has no intervals: it runs once, when it is created.

alter table batch_exports
  drop constraint batch_exports_interval_check,
  add constraint batch_exports_interval_check
    check (interval in ('every 5 minutes', 'every 15 minutes', 'hour', 'day', 'week', 'once'));
