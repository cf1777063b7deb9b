-- How many workers were lost while they had an invocation.
alter table function_queue add column lost smallint not null default 0;
