-- Functions of HogQL that Postgres does not have.

-- As without an origin, but counted from it. A month is over on the same day of the next one, at the same time.
create function hq.start_of_interval(value timestamp, step interval, origin timestamp) returns timestamp
immutable parallel safe language sql as $$
  select case
    when months > 0 then origin + make_interval(months => (floor(passed / months) * months)::int)
    when extract(epoch from step) > 0 then date_bin(step, value, origin)
    end
  from (select (extract(year from step) * 12 + extract(month from step))::int as months,
    ((extract(year from value) - extract(year from origin)) * 12 + extract(month from value) - extract(month from origin))
      - ((extract(day from value), value::time) < (extract(day from origin), origin::time))::int as passed) as made
$$;

-- A text as a number: 0 for one that is none, and nothing for no text.
create function hq.int_or_zero(value text) returns bigint immutable parallel safe strict language plpgsql as $$
begin
  return coalesce(hq.to_int(value), 0);
end $$;

create function hq.float_or_zero(value text) returns float8 immutable parallel safe strict language plpgsql as $$
begin
  return coalesce(hq.to_float(value), 0);
end $$;

-- The year stands before the week. A week belongs to a year as a whole.
create function hq.year_week(value timestamp, mode bigint) returns bigint immutable parallel safe strict language sql as $$
  select (extract(year from value)::bigint
    + case when week > 50 and extract(month from value) = 1 then -1 when week = 1 and extract(month from value) = 12 then 1 else 0 end)
    * 100 + week
  from (select hq.week(value, case when mode in (8, 9) then mode else mode | 2 end) as week) as made
$$;

-- Where each of the texts is first found, in characters from 1. 0: it is not there.
create function hq.search_all_positions(value text, needles text[]) returns bigint[] immutable parallel safe language sql as $$
  select case when value is not null then array(
    select strpos(value, needle)::bigint from unnest(needles) with ordinality as u(needle, n) order by n) end
$$;

-- What the groups of a pattern match where it is first found. A group that matches nothing is an empty text.
create function hq.regexp_groups(value text, pattern text) returns text[] immutable parallel safe language sql as $$
  select case when value is not null then array_replace(coalesce(regexp_match(value, pattern), array[]::text[]), null, '') end
$$;

-- Moves elements from the beginning of a list to its end, and the other way for a negative number.
create function hq.array_rotate(list anyarray, steps bigint) returns anyarray immutable parallel safe language sql as $$
  select case when cardinality(list) = 0 then list else list[first + 1 :] || list[: first] end
  from (select mod(mod(steps, cardinality(list)) + cardinality(list), cardinality(list))::int as first
    where cardinality(list) > 0 union all select 0 where cardinality(list) = 0) as place
$$;

-- A number with the largest unit that it has one of. Each unit is `base` of the one before.
create function hq.readable(value float8, base float8, units text[]) returns text immutable parallel safe strict language plpgsql as $$
declare
  unit int := 1;
begin
  if value in ('NaN', 'Infinity', '-Infinity') then
    return null;
  end if;
  while abs(value) >= base and unit < cardinality(units) loop
    value := value / base;
    unit := unit + 1;
  end loop;
  return round(value::numeric, 2) || units[unit];
end $$;

-- Seconds in words. A year has 365 days, and a month 30.5.
create function hq.readable_seconds(value float8, most text) returns text immutable parallel safe strict language plpgsql as $$
declare
  names constant text[] := array['year', 'month', 'day', 'hour', 'minute', 'second'];
  sizes constant int[] := array[31536000, 2635200, 86400, 3600, 60, 1];
  rest numeric;
  count numeric;
  words text[] := array[]::text[];
begin
  if value in ('NaN', 'Infinity', '-Infinity') then
    return null;
  end if;
  rest := trunc(abs(value)::numeric);
  for unit in coalesce(array_position(names, rtrim(most, 's')), 1) .. cardinality(names) loop
    count := div(rest, sizes[unit]);
    rest := rest - count * sizes[unit];
    if count > 0 or unit = cardinality(names) and words = array[]::text[] then
      words := words || (count || ' ' || names[unit] || case when count = 1 then '' else 's' end);
    end if;
  end loop;
  return case when value < 0 then '-' else '' end
    || concat_ws(' and ', nullif(array_to_string(trim_array(words, 1), ', '), ''), words[cardinality(words)]);
end $$;
