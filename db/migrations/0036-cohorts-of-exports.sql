-- The cohorts that the filters and columns of an export name. Whoever deletes a cohort looks here.
alter table batch_exports add column asks_cohorts integer[] not null default '{}';
create index batch_exports_asks_cohorts on batch_exports using gin (asks_cohorts) where deleted_at is null;
