-- Properties that are copied from events into their persons ($current_url, $browser …) are no longer written by the transaction of
-- each event. A step of maintenance carries the latest values into the persons some minutes later (db/person-carrying.ts).

-- Before which time of the horizon the events have been read. No row: none have.
create table person_carrying (
  only_row boolean primary key default true check (only_row),
  through timestamptz not null
);
-- Until now, the transactions of events have written everything.
insert into person_carrying (through) select clock_timestamp() where exists (select from events);

-- Copied properties that an event set or removed by name, each with the time of the horizon, in microseconds since 2000. What is
-- copied from events up to then does not replace them. Null for nearly everybody.
alter table persons add column named_at jsonb;
