-- The words by which people look for persons. Ingestion changes persons all the time, and an index on the persons themselves would
-- cost each change a third more, a trigger even more. So the words have a table of their own, which maintenance fills.

-- Words end at the punctuation of ASCII. Each is at most 60 letters long, and of a text the first 40 count.
create function name_words(given text) returns text[] immutable strict parallel safe language sql
  return array(
    select left(word, 60)
    from regexp_split_to_table(lower(given), '[\x01-\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+') with ordinality as split (word, at)
    where word <> '' order by at limit 40);

-- What names a person: the properties of properties/person-name.ts.
create function person_names(properties jsonb) returns text immutable strict parallel safe language sql
  return concat_ws(' ', left(properties ->> 'email', 254), left(properties ->> 'name', 254), left(properties ->> 'username', 254));

-- The project is a part of each word, so a search reads the words of its project alone.
create function word_vector(project integer, given text) returns tsvector immutable strict parallel safe language sql
  return array_to_tsvector(array(select distinct project || ':' || word from unnest(name_words(given)) as word));

-- All words of a text, and of the last one its beginning. NULL: it has none.
create function word_query(project integer, given text) returns tsquery immutable strict parallel safe language sql
  return (select string_agg('''' || project || ':' || word || '''' || case when at = cardinality(words) then ':*' else '' end, ' & ')
    from name_words(given) as words, unnest(words) with ordinality as listed (word, at))::tsquery;

create table person_words (
  project_id integer not null,
  person_id uuid not null,
  words tsvector not null,
  primary key (project_id, person_id),
  -- The words of a person go with the person, and nobody brings them back meanwhile.
  foreign key (project_id, person_id) references persons on delete cascade
);
create index person_words_words on person_words using gin (words);

-- Up to which change of a project's persons their words are read.
create table person_words_read (
  project_id integer primary key,
  through timestamptz not null
);

-- The groups of a project are few beside its persons, and seldom change: an index on them is enough.
create function group_names(group_key text, properties jsonb) returns text immutable strict parallel safe language sql
  return concat_ws(' ', group_key, (
    select string_agg(left(value #>> '{}', 254), ' ') from jsonb_each(properties)
    where jsonb_typeof(value) = 'string'));
create index groups_words on groups using gin (word_vector(project_id, group_names(group_key, properties)));
