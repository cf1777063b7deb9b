-- Reruns: a function runs again for its invocations that have ended. They are replays of a third kind.

-- Which ended invocations; see functions/rules/rerun.ts. `after` and `before` are times of their end. Null: not a rerun.
alter table function_replays add column selection json;
-- Which version runs. Null: of each invocation the one that ran before.
alter table function_replays add column version integer;
