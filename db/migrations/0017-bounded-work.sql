-- Functions of Postgres that search, or that compare everything with everything, cannot be stopped: neither a timeout nor
-- a client that has gone ends them. So the work of such a call is bounded before it begins.

create function hq.refuse_work(most bigint) returns void immutable parallel safe language plpgsql as $$
begin
  raise exception 'Searching would take more than % steps, the most that one search may take: both texts, or both lists, are long', most
    using errcode = 'program_limit_exceeded';
end $$;

-- The text itself, if it can be searched for this one with at most so many steps.
create function hq.searched(value text, needle text, most bigint) returns text immutable parallel safe language plpgsql as $$
begin
  if octet_length(value)::bigint * octet_length(needle) > most then
    perform hq.refuse_work(most);
  end if;
  return value;
end $$;

create function hq.searched(value text, needles text[], most bigint) returns text immutable parallel safe language plpgsql as $$
begin
  if octet_length(value)::bigint * octet_length(array_to_string(needles, '')) > most then
    perform hq.refuse_work(most);
  end if;
  return value;
end $$;

-- The list itself, if each of its elements can be compared with each one of the other list.
create function hq.compared(list anyarray, other anyarray, most bigint) returns anyarray immutable parallel safe language plpgsql as $$
begin
  if cardinality(list)::bigint * pg_column_size(other) > most or cardinality(other)::bigint * pg_column_size(list) > most then
    perform hq.refuse_work(most);
  end if;
  return list;
end $$;

-- Postgres sorts a run of combining characters by exchanging neighbours. A character of ASCII belongs to no such run, and
-- what follows it combines with nothing before it. So a long text is normalized in pieces that begin with one.
create function hq.normalize(value text) returns text immutable parallel safe strict language plpgsql as $$
declare
  size constant int := 5000;
  rest text := value;
  piece text;
  made text[] := array[]::text[];
begin
  while char_length(rest) > size loop
    piece := substring(left(rest, size) from '^(.+)[\u0001-\u007f]');
    if piece is null then
      raise exception 'A text has more than % characters in a row that are not ASCII, the most that can be normalized', size
        using errcode = 'program_limit_exceeded';
    end if;
    made := made || normalize(piece, NFC);
    rest := substr(rest, char_length(piece) + 1);
  end loop;
  return array_to_string(made || normalize(rest, NFC), '');
end $$;
