-- When a filter was compared with its digest. Each is compared once an hour: a large one has hundreds of megabytes.
alter table event_id_filter_sets add column looked_at timestamptz not null default clock_timestamp();
