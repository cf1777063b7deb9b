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

-- Each place of a statement that reads a stored document has a copy of it until the row is done, and what reads it leaves
-- much more behind. These functions clean up after themselves, and can be stopped. Small documents do without them, so
-- plans do not count them.

create function hq.refuse_document(size bigint, most bigint) returns void immutable parallel safe language plpgsql as $$
begin
  raise exception 'An event has a document or a value of % bytes, and in as many places as this query reads documents each may have % at most', size, most
    using errcode = 'program_limit_exceeded';
end $$;

-- A document of at most that many bytes, or an error.
create function hq.whole_document(document json, most bigint) returns json immutable parallel safe strict cost 0.001 language plpgsql as $$
begin
  if octet_length(document::text) > most then
    perform hq.refuse_document(octet_length(document::text), most);
  end if;
  return document;
end $$;

create function hq.whole_text(value text, most bigint) returns text immutable parallel safe strict cost 0.001 language plpgsql as $$
begin
  if octet_length(value) > most then
    perform hq.refuse_document(octet_length(value), most);
  end if;
  return value;
end $$;

-- What is found in a document on a path. A step is k and a key, or n and the number of an element.
create function hq.inside(document json, steps text[]) returns json immutable parallel safe cost 0.001 language plpgsql as $$
declare
  step text;
begin
  foreach step in array steps loop
    document := case when left(step, 1) = 'k' then document -> substr(step, 2) else document -> substr(step, 2)::int end;
  end loop;
  return document;
end $$;

create function hq.text_inside(document json, steps text[], most bigint) returns text immutable parallel safe cost 0.001 language plpgsql as $$
declare
  found text;
begin
  -- As text it is what `->>` gives: an element of a list of one.
  found := json_build_array(hq.inside(document, steps)) ->> 0;
  if octet_length(found) > most then
    perform hq.refuse_document(octet_length(found), most);
  end if;
  return found;
end $$;

-- In binary form a document can have several times its bytes.
create function hq.binary_inside(document json, steps text[], most bigint) returns jsonb immutable parallel safe cost 0.001 language plpgsql as $$
begin
  document := hq.inside(document, steps);
  -- As a number of jsonb, 1e+300 has all its digits when it is printed.
  if octet_length(document::text)::bigint * (case when document::text ~ '[0-9]e[+-]?[0-9]{2}' then 64 else 4 end) > most then
    perform hq.refuse_document(octet_length(document::text), most / 4);
  end if;
  return document::jsonb;
end $$;

-- A document of which a list is made: an element of two characters takes much more in a list.
create function hq.listed(value jsonb, most bigint) returns jsonb immutable parallel safe strict language plpgsql as $$
begin
  if pg_column_size(value)::bigint * 4 > most then
    perform hq.refuse_size(most);
  end if;
  return value;
end $$;

-- A text that is read as a document. 1e300 has all its digits when it is printed.
create function hq.document_text(value text, most bigint) returns text immutable parallel safe strict language plpgsql as $$
begin
  if octet_length(value)::bigint * (case when value ~ '[0-9][eE][+]?[0-9]{2}' then 64 else 4 end) > most
    or value ~ '[0-9][eE][+-]?0*[1-9][0-9]{3}' and octet_length(value)::bigint * 16384 > most then
    perform hq.refuse_size(most);
  end if;
  return value;
end $$;
