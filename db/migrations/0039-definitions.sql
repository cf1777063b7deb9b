-- Which names of events and properties a project uses: for autocompletion, and for the types of properties. The events are the
-- truth; these rows are gathered beside their storage (capture/definitions), and may miss what was seen once.

create table definitions (
  project_id integer not null,
  kind text collate "C" not null check (kind in ('event', 'event_property', 'person_property', 'group_property')),
  -- The type of groups that has the property. -1: the name is none of a group.
  group_type_index smallint not null check ((kind = 'group_property') = (group_type_index between 0 and 4) and group_type_index >= -1),
  name text collate "C" not null,
  id uuid not null default gen_random_uuid(),
  -- What the first value that has a type was. Null: nobody knows yet, or the name is an event's.
  property_type text check (property_type in ('String', 'Numeric', 'Boolean', 'DateTime')),
  created_at timestamptz not null default now(),
  -- Changes once an hour at most. Equal to created_at: the name was seen within one hour only.
  last_seen_at timestamptz not null default now(),
  primary key (project_id, kind, group_type_index, name)
) with (fillfactor = 90);
create unique index definitions_id on definitions (project_id, id);
