-- Why the invocations of these positions are not run. They are listed as cancelled, and then the row is gone.
alter table function_positions add column cancelled text;
-- Persons that were deleted since these positions were kept: their events are left out.
alter table function_positions add column forgotten uuid[] not null default '{}';
