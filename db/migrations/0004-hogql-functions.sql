-- What HogQL needs and Postgres has not, or has otherwise. All of it depends on its arguments only.

-- A schema of that name can only be left over from a database whose tables were dropped: it holds nothing else.
drop schema if exists hq cascade;
create schema hq;

-- Conversions: NULL for what is no such value. Each test is a statement of its own: in one CASE the planner may
-- evaluate the cast of a constant before the test that guards it.

create function hq.to_float(value text) returns float8 immutable parallel safe strict cost 2 language plpgsql as $$
begin
  if not pg_input_is_valid(value, 'float8') then
    return null;
  end if;
  return nullif(value::float8, 'NaN');
end $$;

create function hq.to_int(value text) returns bigint immutable parallel safe strict language plpgsql as $$
begin
  if value !~ '^[+-]?[0-9]{1,30}$' or not pg_input_is_valid(value, 'bigint') then
    return null;
  end if;
  return value::bigint;
end $$;

create function hq.float_to_int(value float8) returns bigint immutable parallel safe language sql as
$$ select case when value > -9.2e18 and value < 9.2e18 then trunc(value)::bigint end $$;

create function hq.to_decimal(value text, scale int) returns float8 immutable parallel safe strict language plpgsql as $$
begin
  if value ~* '[nf]' or not pg_input_is_valid(value, 'float8') then
    return null;
  end if;
  return trunc(value::numeric, least(greatest(scale, 0), 76))::float8;
end $$;

create function hq.to_bool(value text) returns boolean immutable parallel safe language sql as
$$ select case lower(value) when 'true' then true when '1' then true when 'false' then false when '0' then false end $$;

create function hq.to_uuid(value text) returns uuid immutable parallel safe language sql as
$$ select case when value ~* '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' then value::uuid end $$;

create function hq.to_json(value text) returns jsonb immutable parallel safe strict language plpgsql as $$
begin
  if not pg_input_is_valid(value, 'jsonb') then
    return null;
  end if;
  return value::jsonb;
end $$;

-- YYYY-MM-DD[T| HH:MM[:SS[.fff]][Z|±HH[:]MM]], as everywhere in this project.
create function hq.to_datetime(value text, zone text) returns timestamptz immutable parallel safe strict language plpgsql as $$
begin
  if value !~ '^\s*\d{4}-\d\d-\d\d([Tt ]\d\d:\d\d(:\d\d([.,]\d{1,9})?)?(Z|z|[+-]\d\d(:?\d\d)?)?)?\s*$' then
    return null;
  end if;
  value := replace(value, ',', '.');
  if value ~ '[Tt ]24:|:60' or not pg_input_is_valid(value, 'timestamptz') then
    return null;
  elsif value ~ '[Tt ]\d\d:\d\d.*(Z|z|[+-]\d\d(:?\d\d)?)\s*$' then
    return value::timestamptz;
  end if;
  return value::timestamp at time zone zone;
end $$;

create function hq.to_date(value text, zone text) returns date immutable parallel safe strict language plpgsql as $$
begin
  return (hq.to_datetime(value, zone) at time zone zone)::date;
end $$;

create function hq.to_timestamp(value float8) returns timestamptz immutable parallel safe language sql as
$$ select case when value between -62135596800 and 253402300799 then to_timestamp(value) end $$;

-- Small numbers are days, others seconds.
create function hq.int_to_date(value bigint, zone text) returns date immutable parallel safe language sql as $$
  select case
    when value between 0 and 65535 then date '1970-01-01' + value::int
    when value between 0 and 253402300799 then (to_timestamp(value) at time zone zone)::date
  end
$$;

create function hq.parse_datetime(value text, picture text, zone text) returns timestamptz
immutable parallel safe language plpgsql as $$
begin
  return to_timestamp(value, picture)::timestamp at time zone zone;
exception when data_exception then
  return null;
end $$ set timezone = 'UTC';

create function hq.datetime_text(value timestamptz, zone text) returns text immutable parallel safe language sql as $$
  select to_char(value at time zone zone,
    case when extract(microsecond from value)::int % 1000000 = 0 then 'YYYY-MM-DD HH24:MI:SS' else 'YYYY-MM-DD HH24:MI:SS.US' end)
$$;

create function hq.uuid_time(value uuid) returns timestamptz immutable parallel safe language sql as $$
  select case when substr(value::text, 15, 1) = '7' then
    to_timestamp(('x' || substr(replace(value::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0) end
$$;

create function hq.hex_int(value bigint) returns text immutable parallel safe language sql as $$
  select case when length(digits) % 2 = 1 then '0' || digits else digits end
  from (select upper(to_hex(value)) as digits) as made
$$;

-- Bytes that are no text in UTF-8 give NULL.
create function hq.bytes_text(value bytea) returns text immutable parallel safe language plpgsql as $$
begin
  return convert_from(value, 'UTF8');
exception when character_not_in_repertoire or untranslatable_character then
  return null;
end $$;

create function hq.unhex(value text) returns text immutable parallel safe language sql as $$
  select case when value ~ '^([0-9A-Fa-f]{2})*$' then hq.bytes_text(decode(value, 'hex')) end
$$;

-- Text.

-- A LIKE pattern that is only known at run time: a backslash before anything but %, _ and itself is a character.
create function hq.like_pattern(pattern text) returns text immutable parallel safe language sql as $$
  select case when strpos(pattern, '\') = 0 then pattern
    else regexp_replace(regexp_replace(pattern, '\\([%_\\])|\\', E'\\\\\\\\\\1', 'g'), '\\\\([%_\\])', '\\\1', 'g') end
$$;

create function hq.count_of(value bigint) returns int immutable parallel safe language sql as
$$ select least(greatest(value, -1000000), 1000000)::int $$;

create function hq.ends_with(value text, ending text) returns boolean immutable parallel safe language sql as
$$ select right(value, char_length(ending)) = ending $$;

-- From 1, from the end if negative; a negative length leaves that many characters at the end.
create function hq.substring(value text, start bigint, size bigint default null) returns text
immutable parallel safe language sql as $$
  select case
    when start = 0 then ''
    when size is null then substr(value, first)
    when size >= 0 then substr(value, first, greatest(least(size, 1000000000), 0)::int)
    else substr(value, first, greatest(char_length(value) - first + 1 + greatest(size, -1000000000)::int, 0))
  end
  from (select case
    when start > 0 then least(start, 1000000000)::int
    else char_length(value) + greatest(start, -1000000000)::int + 1 end as first) as place
$$;

create function hq.position(value text, needle text, start bigint) returns bigint immutable parallel safe language sql as $$
  select case when found = 0 then 0 else found + skipped end::bigint
  from (select strpos(substr(value, skipped + 1), needle) as found, skipped
    from (select least(greatest(start - 1, 0), 1000000000)::int as skipped) as place) as search
$$;

create function hq.replace_one(value text, needle text, replacement text) returns text immutable parallel safe language sql as $$
  select case when needle = '' or strpos(value, needle) = 0 then value
    else overlay(value placing replacement from strpos(value, needle) for char_length(needle)) end
$$;

create function hq.count_substrings(value text, needle text) returns bigint immutable parallel safe language sql as $$
  select case when needle = '' then 0
    else (char_length(value) - char_length(replace(value, needle, ''))) / char_length(needle) end::bigint
$$;

create function hq.regexp_extract(value text, pattern text, part int) returns text immutable parallel safe language sql as
$$ select case when value is not null then coalesce(regexp_substr(value, pattern, 1, 1, '', part), '') end $$;

create function hq.regexp_extract_all(value text, pattern text, part int) returns text[] immutable parallel safe language sql as $$
  select case when value is not null then array(
    select coalesce(regexp_substr(value, pattern, 1, found, '', part), '')
    from generate_series(1, regexp_count(value, pattern)) as found order by found) end
$$;

-- An empty separator splits into characters; a limit drops what follows, as in ClickHouse.
create function hq.split(value text, separator text, size bigint default 0) returns text[] immutable parallel safe language sql as $$
  select case
    when value is null or separator is null then null
    when value = '' and separator = '' then array[]::text[]
    when value = '' then array['']
    when size > 0 then pieces[: least(size, 1000000)::int]
    else pieces end
  from (select string_to_array(value, case when separator = '' then null else separator end) as pieces) as made
$$;

create function hq.split_part(value text, separator text, index bigint) returns text immutable parallel safe language sql as
$$ select case when separator = '' or index = 0 then '' else split_part(value, separator, hq.count_of(index)) end $$;

create function hq.split_regexp(value text, pattern text) returns text[] immutable parallel safe language sql as
$$ select case when value is not null then regexp_split_to_array(value, pattern) end $$;

create function hq.split_blank(value text) returns text[] immutable parallel safe language sql as
$$ select case when value is not null then array_remove(regexp_split_to_array(value, '[ \t\n\r\f\v]+'), '') end $$;

create function hq.split_non_alpha(value text) returns text[] immutable parallel safe language sql as
$$ select case when value is not null then array_remove(regexp_split_to_array(value, '[\u0001-\u002f\u003a-\u0040\u005b-\u0060\u007b-\u007f]+'), '') end $$;

create function hq.alpha_tokens(value text) returns text[] immutable parallel safe language sql as
$$ select case when value is not null then array_remove(regexp_split_to_array(value, '[^a-zA-Z]+'), '') end $$;

create function hq.lower_all(texts text[]) returns text[] immutable parallel safe language sql as
$$ select case when texts is not null then array(select lower(t) from unnest(texts) with ordinality as u(t, n) order by n) end $$;

create function hq.search_any(value text, needles text[]) returns bigint immutable parallel safe language sql as
$$ select case when value is not null then (exists (select from unnest(needles) as n where strpos(value, n) > 0))::int::bigint end $$;

create function hq.search_first_position(value text, needles text[]) returns bigint immutable parallel safe language sql as $$
  select case when value is not null then coalesce(
    (select min(strpos(value, n)) from unnest(needles) as n where strpos(value, n) > 0), 0)::bigint end
$$;

create function hq.search_first_index(value text, needles text[]) returns bigint immutable parallel safe language sql as $$
  select case when value is not null then coalesce(
    (select min(i) from unnest(needles) with ordinality as u(n, i) where strpos(value, n) > 0), 0)::bigint end
$$;

create function hq.base64_encode(value text) returns text immutable parallel safe language sql as
$$ select replace(encode(convert_to(value, 'UTF8'), 'base64'), E'\n', '') $$;

create function hq.base64_decode(value text) returns text immutable parallel safe language sql as $$
  select case when value ~ '^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$'
    then hq.bytes_text(decode(value, 'base64')) end
$$;

-- URLs.

create function hq.url_protocol(url text) returns text immutable parallel safe language sql as
$$ select case when url is not null then coalesce(substring(url from '^([a-zA-Z][a-zA-Z0-9+.-]*)://'), '') end $$;

create function hq.url_host(url text) returns text immutable parallel safe language sql as $$
  select case when url is not null then coalesce(
    substring(url from '^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//(?:[^/?#@]*@)?([^/?#:]*)'), '') end
$$;

create function hq.url_domain(url text) returns text immutable parallel safe language sql as $$
  select case when url is null then null
    when url ~ '^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//' then hq.url_host(url)
    else coalesce(substring(url from '^([a-zA-Z0-9_-]+(?:\.[a-zA-Z0-9_-]+)+)(?=[/:?#]|$)'), '') end
$$;

create function hq.url_domain_without_www(url text) returns text immutable parallel safe language sql as
$$ select case when domain like 'www.%' then substr(domain, 5) else domain end from (select hq.url_domain(url) as domain) as made $$;

create function hq.url_cut_www(url text) returns text immutable parallel safe language sql as
$$ select regexp_replace(url, '^((?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//(?:[^/?#@]*@)?)www\.', '\1') $$;

create function hq.url_top_level_domain(url text) returns text immutable parallel safe language sql as $$
  select case when domain is null then null when domain ~ '^[0-9.]*$' then ''
    else coalesce(substring(domain from '\.([^.]+)$'), '') end from (select hq.url_domain(url) as domain) as made
$$;

create function hq.url_port(url text) returns bigint immutable parallel safe language sql as $$
  select case when found::bigint between 1 and 65535 then found::bigint end
  from (select substring(url from '^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//(?:[^/?#@]*@)?[^/?#:]*:(\d{1,5})(?=[/?#]|$)') as found) as made
$$;

create function hq.url_path_full(url text) returns text immutable parallel safe language sql as $$
  select case when url is null then null
    when url ~ '^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//' then
      coalesce(substring(url from '^(?:[a-zA-Z][a-zA-Z0-9+.-]*:)?//[^/?#]*(/.*)$'), '')
    else coalesce(substring(url from '^[^/?#]*(/.*)$'), '') end
$$;

create function hq.url_path(url text) returns text immutable parallel safe language sql as
$$ select regexp_replace(hq.url_path_full(url), '[?#].*$', '') $$;

create function hq.url_query(url text) returns text immutable parallel safe language sql as
$$ select case when url is not null then coalesce(substring(url from '^[^?#]*\?([^#]*)'), '') end $$;

create function hq.url_fragment(url text) returns text immutable parallel safe language sql as
$$ select case when url is not null then coalesce(substring(url from '#(.*)$'), '') end $$;

create function hq.url_query_and_fragment(url text) returns text immutable parallel safe language sql as $$
  select case when url is null then null when url ~ '^[^#]*\?' then substring(url from '\?(.*)$')
    else coalesce(substring(url from '#(.*)$'), '') end
$$;

create function hq.url_cut_query(url text) returns text immutable parallel safe language sql as
$$ select regexp_replace(url, '^([^?#]*)\?[^#]*', '\1') $$;

create function hq.url_cut_fragment(url text) returns text immutable parallel safe language sql as
$$ select regexp_replace(url, '#.*$', '') $$;

create function hq.url_cut_query_and_fragment(url text) returns text immutable parallel safe language sql as
$$ select regexp_replace(url, '[?#].*$', '') $$;

-- The pairs of the query, and of a fragment that looks like one.
create function hq.url_parameters(url text) returns text[] immutable parallel safe language sql as $$
  select case when url is null then null when strpos(url, '?') = 0 then array[]::text[]
    else array(select pair from regexp_split_to_table(substring(url from '\?(.*)$'), '[&#]') with ordinality as p(pair, n)
      where pair <> '' order by n) end
$$;

create function hq.url_parameter_names(url text) returns text[] immutable parallel safe language sql as $$
  select case when url is not null then array(
    select split_part(pair, '=', 1) from unnest(hq.url_parameters(url)) with ordinality as p(pair, n) order by n) end
$$;

create function hq.url_parameter(url text, name text) returns text immutable parallel safe language sql as $$
  select case when url is not null then coalesce(
    (select substr(pair, char_length(name) + 2) from unnest(hq.url_parameters(url)) with ordinality as p(pair, n)
      where starts_with(pair, name || '=') order by n limit 1), '') end
$$;

create function hq.url_encode(value text) returns text immutable parallel safe language sql as $$
  select case when value is not null then coalesce(
    (select string_agg(case when c ~ '^[A-Za-z0-9_.~-]$' then c
      else regexp_replace(upper(encode(convert_to(c, 'UTF8'), 'hex')), '(..)', '%\1', 'g') end, '' order by n)
      from unnest(string_to_array(value, null)) with ordinality as u(c, n)), '') end
$$;

-- What is no percent-encoding stays; bytes that are no text leave all of it as it is.
create function hq.url_decode(value text) returns text immutable parallel safe language sql as $$
  select case when value is null or strpos(value, '%') = 0 then value else coalesce(
    hq.bytes_text((select string_agg(case when piece ~ '^%[0-9A-Fa-f]{2}$'
      then decode(substr(piece, 2), 'hex') else convert_to(piece, 'UTF8') end, ''::bytea order by n)
      from (select m[1] as piece, n from regexp_matches(value, '(%[0-9A-Fa-f]{2}|[^%]+|%)', 'g') with ordinality as r(m, n)) as p)),
    value) end
$$;

-- JSON.

create function hq.compact_json(value jsonb) returns text immutable parallel safe language sql as $$
  select case jsonb_typeof(value)
    when 'object' then '{' || coalesce((select string_agg(to_json(k)::text || ':' || hq.compact_json(v), ',' order by n)
      from jsonb_each(value) with ordinality as e(k, v, n)), '') || '}'
    when 'array' then '[' || coalesce((select string_agg(hq.compact_json(v), ',' order by n)
      from jsonb_array_elements(value) with ordinality as e(v, n)), '') || ']'
    else value::text end
$$;

create function hq.json_index(value bigint) returns jsonb immutable parallel safe language sql as
$$ select to_jsonb(value) $$;

-- Keys are strings, elements are numbered from 1 or from the end; a number finds the n-th member of an object too.
create function hq.json_at(document jsonb, path jsonb[]) returns jsonb immutable parallel safe language plpgsql as $$
declare
  step jsonb;
  index bigint;
begin
  foreach step in array path loop
    if document is null or step is null then
      return null;
    elsif jsonb_typeof(step) = 'string' then
      document := case when jsonb_typeof(document) = 'object' then document -> (step #>> '{}') end;
    else
      index := (step #>> '{}')::bigint;
      if index = 0 or abs(index) > 1000000000 then
        return null;
      elsif jsonb_typeof(document) = 'array' then
        document := document -> (case when index > 0 then index - 1 else index end)::int;
      elsif jsonb_typeof(document) = 'object' then
        document := (select v from jsonb_each(document) with ordinality as e(k, v, n)
          where n = case when index > 0 then index else (select count(*) from jsonb_object_keys(document)) + index + 1 end);
      else
        return null;
      end if;
    end if;
  end loop;
  return document;
end $$;

create function hq.json_string_or_null(value jsonb) returns text immutable parallel safe language sql as
$$ select case jsonb_typeof(value) when 'string' then value #>> '{}' when 'null' then null else hq.compact_json(value) end $$;

create function hq.json_string(value jsonb) returns text immutable parallel safe language sql as
$$ select coalesce(hq.json_string_or_null(value), '') $$;

create function hq.json_number_or_null(value jsonb) returns float8 immutable parallel safe language sql as $$
  select case jsonb_typeof(value)
    when 'number' then hq.to_float(value::text)
    when 'string' then hq.to_float(value #>> '{}')
    when 'boolean' then (value = 'true'::jsonb)::int::float8 end
$$;

create function hq.json_float(value jsonb) returns float8 immutable parallel safe language sql as
$$ select coalesce(hq.json_number_or_null(value), 0) $$;

create function hq.json_int(value jsonb) returns bigint immutable parallel safe language sql as $$
  select coalesce(case when jsonb_typeof(value) in ('number', 'string') then coalesce(hq.to_int(value #>> '{}'),
    hq.float_to_int(hq.to_float(value #>> '{}'))) when jsonb_typeof(value) = 'boolean' then (value = 'true'::jsonb)::int::bigint end, 0)
$$;

create function hq.json_boolean_or_null(value jsonb) returns boolean immutable parallel safe language sql as
$$ select case when jsonb_typeof(value) = 'boolean' then value = 'true'::jsonb end $$;

create function hq.json_bool(value jsonb) returns boolean immutable parallel safe language sql as
$$ select coalesce(jsonb_typeof(value) = 'boolean' and value = 'true'::jsonb, false) $$;

create function hq.json_texts(value jsonb) returns text[] immutable parallel safe language sql as $$
  select case when jsonb_typeof(value) = 'array' then array(
    select coalesce(v #>> '{}', '') from jsonb_array_elements(value) with ordinality as e(v, n) order by n) else array[]::text[] end
$$;

create function hq.json_ints(value jsonb) returns bigint[] immutable parallel safe language sql as $$
  select case when jsonb_typeof(value) = 'array' then array(
    select hq.json_int(v) from jsonb_array_elements(value) with ordinality as e(v, n) order by n) else array[]::bigint[] end
$$;

create function hq.json_floats(value jsonb) returns float8[] immutable parallel safe language sql as $$
  select case when jsonb_typeof(value) = 'array' then array(
    select hq.json_float(v) from jsonb_array_elements(value) with ordinality as e(v, n) order by n) else array[]::float8[] end
$$;

create function hq.json_array_raw(value jsonb) returns text[] immutable parallel safe language sql as $$
  select case when jsonb_typeof(value) = 'array' then array(
    select hq.compact_json(v) from jsonb_array_elements(value) with ordinality as e(v, n) order by n) else array[]::text[] end
$$;

create function hq.json_keys(value jsonb) returns text[] immutable parallel safe language sql as $$
  select case when jsonb_typeof(value) = 'object' then array(
    select k from jsonb_object_keys(value) with ordinality as e(k, n) order by n) else array[]::text[] end
$$;

create function hq.json_values(value jsonb) returns text[] immutable parallel safe language sql as $$
  select case when jsonb_typeof(value) = 'object' then array(
    select v #>> '{}' from jsonb_each(value) with ordinality as e(k, v, n) order by n) else array[]::text[] end
$$;

create function hq.json_pairs(value jsonb) returns jsonb immutable parallel safe language sql as $$
  select case when jsonb_typeof(value) = 'object' then coalesce((select jsonb_agg(jsonb_build_array(k, v #>> '{}') order by n)
    from jsonb_each(value) with ordinality as e(k, v, n) where jsonb_typeof(v) = 'string'), '[]') else '[]'::jsonb end
$$;

create function hq.json_pairs_raw(value jsonb) returns jsonb immutable parallel safe language sql as $$
  select case when jsonb_typeof(value) = 'object' then coalesce((select jsonb_agg(jsonb_build_array(k, hq.compact_json(v)) order by n)
    from jsonb_each(value) with ordinality as e(k, v, n)), '[]') else '[]'::jsonb end
$$;

create function hq.json_length(value jsonb) returns bigint immutable parallel safe language sql as $$
  select case jsonb_typeof(value) when 'array' then jsonb_array_length(value)
    when 'object' then (select count(*) from jsonb_object_keys(value)) else 0 end::bigint
$$;

create function hq.json_type(value jsonb) returns text immutable parallel safe language sql as $$
  select case jsonb_typeof(value) when 'object' then 'Object' when 'array' then 'Array' when 'string' then 'String'
    when 'boolean' then 'Bool' when 'number' then case when value::text ~ '[.eE]' then 'Double' else 'Int64' end else 'Null' end
$$;

create function hq.json_scalar(value jsonb) returns text immutable parallel safe language sql as
$$ select case when jsonb_typeof(value) in ('string', 'number', 'boolean') then value #>> '{}' else '' end $$;

-- Dates.

create function hq.days(value float8) returns interval immutable parallel safe language sql as
$$ select make_interval(days => least(greatest(trunc(value), -10000000), 10000000)::int) $$;

create function hq.months(value float8) returns interval immutable parallel safe language sql as
$$ select make_interval(months => least(greatest(trunc(value), -200000), 200000)::int) $$;

create function hq.seconds(value float8) returns interval immutable parallel safe language sql as
$$ select make_interval(secs => least(greatest(value, -1e12), 1e12)) $$;

-- Beyond the calendar's ends there is nothing.
create function hq.date_add(value date, step interval) returns date immutable parallel safe language plpgsql as $$
begin
  return (value + step)::date;
exception when datetime_field_overflow then
  return null;
end $$;

create function hq.datetime_add(value timestamptz, step interval, zone text) returns timestamptz
immutable parallel safe language plpgsql as $$
begin
  -- Hours and less are elapsed time, days and more are steps of the calendar.
  return ((value at time zone zone) + (step - (step - date_trunc('day', step)))) at time zone zone
    + (step - date_trunc('day', step));
exception when datetime_field_overflow then
  return null;
end $$;

create function hq.date_diff(unit text, start timestamp, finish timestamp) returns bigint immutable parallel safe language sql as $$
  select case unit
    when 'year' then extract(year from finish) - extract(year from start)
    when 'quarter' then (extract(year from finish) - extract(year from start)) * 4 + extract(quarter from finish) - extract(quarter from start)
    when 'month' then (extract(year from finish) - extract(year from start)) * 12 + extract(month from finish) - extract(month from start)
    when 'week' then (date_trunc('week', finish)::date - date_trunc('week', start)::date) / 7
    when 'day' then finish::date - start::date
    else div(extract(epoch from date_trunc(unit, finish) - date_trunc(unit, start))::numeric, case unit
      when 'hour' then 3600 when 'minute' then 60 when 'second' then 1 when 'millisecond' then 0.001 else 0.000001 end)
    end::bigint
$$;

create function hq.age(unit text, start timestamp, finish timestamp) returns bigint immutable parallel safe language sql as $$
  select case
    when unit in ('year', 'quarter', 'month') then
      div((extract(year from passed) * 12 + extract(month from passed))::numeric, case unit when 'year' then 12 when 'quarter' then 3 else 1 end)
    else div(extract(epoch from finish - start)::numeric, case unit when 'week' then 604800 when 'day' then 86400
      when 'hour' then 3600 when 'minute' then 60 when 'second' then 1 when 'millisecond' then 0.001 else 0.000001 end)
    end::bigint
  from (select age(finish, start) as passed) as made
$$;

create function hq.start_of_interval(value timestamp, step interval) returns timestamp immutable parallel safe language sql as $$
  select case
    when months > 0 then timestamp '1970-01-01' + make_interval(months =>
      (floor(((extract(year from value) - 1970) * 12 + extract(month from value) - 1) / months) * months)::int)
    when extract(epoch from step) > 0 then
      date_bin(step, value, case when extract(epoch from step)::numeric % 604800 = 0 then timestamp '1970-01-05' else timestamp '1970-01-01' end)
    end
  from (select (extract(year from step) * 12 + extract(month from step))::int as months) as made
$$;

create function hq.start_of_iso_year(value timestamp) returns date immutable parallel safe language sql as
$$ select to_date(to_char(value, 'IYYY') || '-01-1', 'IYYY-IW-ID') $$;

-- The modes of MySQL: bit 0 Monday first, bit 1 from 1, bit 2 the first week begins with the first such day.
create function hq.week(value timestamp, mode bigint) returns bigint immutable parallel safe language plpgsql as $$
declare
  monday_first boolean := (mode & 1) = 1;
  from_one boolean := (mode & 2) = 2;
  first_weekday boolean := ((mode & 4) = 4);
  day date := value::date;
  year int := extract(year from day);
  contains_first boolean := mode in (8, 9);
  weekday int;
  first date;
begin
  if not monday_first then
    first_weekday := not first_weekday;
  end if;
  -- With Monday first a week belongs to the year that has most of it, unless the mode says otherwise.
  if mode not between 0 and 9 then
    return null;
  end if;
  from_one := from_one or contains_first;
  for y in reverse year + 1 .. year - 1 loop
    first := make_date(y, 1, 1);
    weekday := case when monday_first then extract(isodow from first)::int - 1 else extract(dow from first)::int end;
    if contains_first then
      first := first - weekday;
    elsif first_weekday then
      first := first + ((7 - weekday) % 7);
    else
      first := first - weekday + case when weekday > 3 then 7 else 0 end;
    end if;
    if day >= first then
      if y > year and not from_one then
        continue;
      elsif y < year and not from_one then
        return 0;
      end if;
      return (day - first) / 7 + 1;
    end if;
  end loop;
  return 0;
end $$;

create function hq.make_date(year bigint, month bigint, day bigint) returns date immutable parallel safe strict language plpgsql as $$
begin
  if year not between 1 and 9999 or month not between 1 and 12 or day not between 1 and 31 then
    return null;
  end if;
  return make_date(year::int, month::int, day::int);
exception when datetime_field_overflow then
  return null;
end $$;

create function hq.make_timestamp(year float8, month float8, day float8, hour float8, minute float8, second float8)
returns timestamp immutable parallel safe language sql as $$
  select case when hour >= 0 and hour < 24 and minute >= 0 and minute < 60 and second >= 0 and second < 60 then
    hq.make_date(year::bigint, month::bigint, day::bigint) + make_interval(hours => trunc(hour)::int, mins => trunc(minute)::int, secs => second) end
$$;

-- Numbers: nothing where there is no result, not an error.

create function hq.modulo(value float8, by float8) returns float8 immutable parallel safe language sql as
$$ select value - by * trunc(value / nullif(by, 0)) $$;

create function hq.int_div(value numeric, by numeric) returns bigint immutable parallel safe language sql as
$$ select case when abs(made) < 9.2e18 then made::bigint end from (select div(value, nullif(by, 0)) as made) as quotient $$;

create function hq.round(value float8, places bigint) returns float8 immutable parallel safe language sql as $$
  select case when value in ('NaN', 'Infinity', '-Infinity') then value
    when places = 0 then round(value)
    else round(value::numeric, least(greatest(places, -300), 300)::int)::float8 end
$$;

create function hq.trunc(value float8, places bigint) returns float8 immutable parallel safe language sql as $$
  select case when value in ('NaN', 'Infinity', '-Infinity') then value
    else trunc(value::numeric, least(greatest(places, -300), 300)::int)::float8 end
$$;

create function hq.floor(value float8, places bigint) returns float8 immutable parallel safe language sql as $$
  select case when places = 0 or value in ('NaN', 'Infinity', '-Infinity') then floor(value)
    else (floor(value::numeric * power(10::numeric, least(greatest(places, -300), 300))) / power(10::numeric, least(greatest(places, -300), 300)))::float8 end
$$;

create function hq.ceil(value float8, places bigint) returns float8 immutable parallel safe language sql as
$$ select - hq.floor(- value, places) $$;

create function hq.ln(value float8) returns float8 immutable parallel safe language sql as
$$ select case when value > 0 then ln(value) end $$;

create function hq.log10(value float8) returns float8 immutable parallel safe language sql as
$$ select case when value > 0 then log(value) end $$;

create function hq.sqrt(value float8) returns float8 immutable parallel safe language sql as
$$ select case when value >= 0 then sqrt(value) end $$;

create function hq.exp(value float8) returns float8 immutable parallel safe language sql as
$$ select case when value > 709 then 'Infinity'::float8 when value < -700 then 0 else exp(value) end $$;

create function hq.power(base float8, exponent float8) returns float8 immutable parallel safe language plpgsql as $$
begin
  return power(base, exponent);
exception
  when numeric_value_out_of_range then return case when (abs(base) > 1) = (exponent > 0) then 'Infinity'::float8 else 0 end;
  when data_exception then return null;
end $$;

create function hq.asin(value float8) returns float8 immutable parallel safe language sql as
$$ select case when value between -1 and 1 then asin(value) end $$;

create function hq.acos(value float8) returns float8 immutable parallel safe language sql as
$$ select case when value between -1 and 1 then acos(value) end $$;

create function hq.factorial(value bigint) returns bigint immutable parallel safe language sql as
$$ select case when value <= 1 then 1 when value <= 20 then factorial(value)::bigint end $$;

-- Arrays.

create function hq.array_element(list anyarray, index bigint) returns anyelement immutable parallel safe language sql as $$
  select case when index > 0 and index < 2000000000 then list[index::int]
    when index < 0 and index > -2000000000 then list[(cardinality(list) + index + 1)::int] end
$$;

create function hq.array_slice(list anyarray, start bigint, size bigint default null) returns anyarray immutable parallel safe language sql as $$
  select list[first : case when size is null then n when size >= 0 then least(first + size - 1, n)::int else (n + size)::int end]
  from (select cardinality(list) as n, case when start > 0 then least(start, 1000000000)
    else greatest(cardinality(list) + start + 1, 1) end::int as first) as place
$$;

create function hq.array_distinct(list anyarray) returns anyarray immutable parallel safe language sql as $$
  select coalesce((select array_agg(x order by n) from (select x, min(n) as n from unnest(list) with ordinality as u(x, n)
    where x is not null group by x) as firsts), list[1:0])
$$;

create function hq.array_reverse(list anyarray) returns anyarray immutable parallel safe language sql as
$$ select coalesce((select array_agg(x order by n desc) from unnest(list) with ordinality as u(x, n)), list) $$;

-- Neighbours that are equal become one.
create function hq.array_compact(list anyarray) returns anyarray immutable parallel safe language sql as $$
  select coalesce((select array_agg(x order by n) from unnest(list) with ordinality as u(x, n)
    where n = 1 or x is distinct from list[n - 1]), list)
$$;

create function hq.range(start bigint, finish bigint, step bigint) returns bigint[] immutable parallel safe language sql as $$
  select case when step > 0 and (finish - start) / step <= 1000000 then
    array(select x from generate_series(start, finish - 1, step) as x order by x) end
$$;

create function hq.top_k(list anyarray, size bigint) returns anyarray immutable parallel safe language sql as $$
  select coalesce((select array_agg(x order by c desc, n) from (select x, count(*) as c, min(n) as n
    from unnest(list) with ordinality as u(x, n) group by x order by c desc, n limit size) as best), list[1:0])
$$;

create function hq.sortable_semver(value text) returns bigint[] immutable parallel safe language sql as $$
  select coalesce(array(select x::numeric::bigint from unnest(string_to_array(
    substring(value from '\d{1,15}(?:\.\d{1,15})+'), '.')) with ordinality as u(x, n) order by n), array[]::bigint[])
$$;

-- The chain of elements that were clicked.

create function hq.elements_href(chain text) returns text immutable parallel safe language sql as
$$ select coalesce(substring(chain from '(?::|")href="((?:[^"\\]|\\.)*)"'), '') $$;

create function hq.elements_values(chain text, name text) returns text[] immutable parallel safe language sql as $$
  select array(select distinct m[1] from regexp_matches(coalesce(chain, ''), '(?::|")' || name || '="((?:[^"\\]|\\.)*)"', 'g') as m)
$$;

create function hq.elements_tags(chain text) returns text[] immutable parallel safe language sql as $$
  select array(select distinct m[1] from regexp_matches(coalesce(chain, ''), '(?:^|;)(a|button|form|input|select|textarea|label)(?=\.|$|;|:)', 'g') as m)
$$;
