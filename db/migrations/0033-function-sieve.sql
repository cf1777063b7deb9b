-- Events that no function can want are only counted. `events` and `keys` are those of the others. If there are only some of
-- those, their pages are not noted, and they are read by their keys.
-- The counts: a list of `{"project": 1, "name": "$pageview", "count": 20}`. No name: no function names these events. Null: none.
alter table function_batches add column skipped json;
