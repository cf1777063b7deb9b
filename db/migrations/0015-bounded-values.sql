-- The functions and aggregates of HogQL whose results can be much larger than their arguments. Each takes the most bytes
-- that its result may have, and refuses before it builds more. A statement's own limits, such as work_mem, do not apply
-- to values.

-- Program limit exceeded: the query is at fault, and trying again does not help.
create function hq.refuse_size(most bigint) returns void immutable parallel safe language plpgsql as $$
begin
  raise exception 'A value would have more than % bytes, the most that a value of this query may have', most
    using errcode = 'program_limit_exceeded';
end $$;

-- The value itself, if what is made of it can have at most that many times its bytes.
create function hq.within(value text, factor int, most bigint) returns text immutable parallel safe strict language plpgsql as $$
begin
  if octet_length(value)::bigint * factor > most then
    perform hq.refuse_size(most);
  end if;
  return value;
end $$;

create function hq.repeat(value text, count int, most bigint) returns text immutable parallel safe strict language plpgsql as $$
begin
  if octet_length(value)::bigint * count > most then
    perform hq.refuse_size(most);
  end if;
  return repeat(value, count);
end $$;

-- A character has at most four bytes.
create function hq.lpad(value text, count int, filling text, most bigint) returns text immutable parallel safe strict language plpgsql as $$
begin
  if count::bigint * 4 > most then
    perform hq.refuse_size(most);
  end if;
  return lpad(value, count, filling);
end $$;

create function hq.rpad(value text, count int, filling text, most bigint) returns text immutable parallel safe strict language plpgsql as $$
begin
  if count::bigint * 4 > most then
    perform hq.refuse_size(most);
  end if;
  return rpad(value, count, filling);
end $$;

create function hq.replace(value text, needle text, replacement text, most bigint) returns text
immutable parallel safe strict language plpgsql as $$
declare
  found bigint := octet_length(value);
begin
  -- They are only counted if the most there can be would be too many.
  if found * octet_length(replacement) > most then
    found := hq.count_substrings(value, needle);
    if octet_length(value) + found * (octet_length(replacement) - octet_length(needle)) > most then
      perform hq.refuse_size(most);
    end if;
  end if;
  return replace(value, needle, replacement);
end $$;

-- Each backslash of the replacement can stand for the whole match. Matches do not overlap.
create function hq.regexp_replace(value text, pattern text, replacement text, flags text, most bigint) returns text
immutable parallel safe strict language plpgsql as $$
declare
  size bigint := octet_length(value);
  groups bigint := char_length(replacement) - char_length(replace(replacement, '\', ''));
  found bigint := case when flags = 'g' then size + 1 else 1 end;
begin
  if size * (1 + groups) + found * octet_length(replacement) > most then
    found := case when flags = 'g' then regexp_count(value, pattern) else 1 end;
    if size * (1 + groups) + found * octet_length(replacement) > most then
      perform hq.refuse_size(most);
    end if;
  end if;
  return regexp_replace(value, pattern, replacement, flags);
end $$;

-- The text of an element has at most three times its bytes.
create function hq.array_to_string(list anyarray, separator text, most bigint) returns text
immutable parallel safe strict language plpgsql as $$
begin
  if pg_column_size(list)::bigint * 3 + cardinality(list)::bigint * octet_length(separator) > most then
    perform hq.refuse_size(most);
  end if;
  return array_to_string(list, separator);
end $$;

create function hq.range(start bigint, finish bigint, step bigint, most bigint) returns bigint[]
immutable parallel safe strict language plpgsql as $$
begin
  if step > 0 and finish > start and (finish::numeric - start) / step between most / 8 and 1000000 then
    perform hq.refuse_size(most);
  end if;
  return hq.range(start, finish, step);
end $$;

-- Aggregates that keep the values of all rows stand beside this one, which counts what they keep and refuses at the row
-- that is too much. Each value counts what an array needs for it in addition.

create function hq.add_size(state bigint, size bigint, most bigint) returns bigint immutable parallel safe language plpgsql as $$
begin
  state := coalesce(state, 0) + coalesce(size, 0) + 32;
  if state > most then
    perform hq.refuse_size(most);
  end if;
  return state;
end $$;

create function hq.add_text(state bigint, value text, most bigint) returns bigint immutable parallel safe language sql as
$$ select hq.add_size(state, octet_length(value), most) $$;

-- A stored document can be compressed, so its own size says little.
create function hq.add_document(state bigint, value jsonb, most bigint) returns bigint immutable parallel safe language sql as
$$ select hq.add_size(state, octet_length(value::text), most) $$;

-- For types of a fixed size.
create function hq.add_value(state bigint, value anyelement, most bigint) returns bigint immutable parallel safe language sql as
$$ select hq.add_size(state, pg_column_size(value), most) $$;

create aggregate hq.total_of_texts(value text, most bigint) (sfunc = hq.add_text, stype = bigint);
create aggregate hq.total_of_documents(value jsonb, most bigint) (sfunc = hq.add_document, stype = bigint);
create aggregate hq.total_of_values(value anyelement, most bigint) (sfunc = hq.add_value, stype = bigint);

-- The first value in the order of the aggregate, in an array because it may be NULL, and the last one that is not NULL.

create function hq.keep_first(state anyarray, value anyarray) returns anyarray immutable parallel safe strict language plpgsql as $$
begin
  return state;
end $$;

create aggregate hq.first_in_order(value anyarray) (sfunc = hq.keep_first, stype = anyarray);

create function hq.keep_last(state anyelement, value anyelement) returns anyelement immutable parallel safe strict language plpgsql as $$
begin
  return value;
end $$;

create aggregate hq.last_known(value anyelement) (sfunc = hq.keep_last, stype = anyelement);
