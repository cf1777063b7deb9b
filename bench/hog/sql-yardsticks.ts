// The 20 most common filters and selections, as filter documents or HogQL, with SQL written by hand for the same
// question. The SQL uses safe casts, because otherwise one odd value would end the query.

export interface Yardstick {
  name: string;
  /** The condition in HogQL. */
  where: string;
  /** The same condition in SQL, over `e`. */
  hand: string;
  /** The selection in HogQL and in SQL. Without it, the query counts rows. */
  select?: [hogql: string, hand: string];
}

const P = (key: string) => `(e.properties ->> '${key}')`;

export const YARDSTICKS: Yardstick[] = [
  { name: 'every event', where: '1 = 1', hand: 'true' },
  { name: 'event name', where: "event = '$pageview'", hand: "e.event = '$pageview'" },
  {
    name: 'event names',
    where: "event in ('$pageview', 'signup')",
    hand: "e.event in ('$pageview', 'signup')",
  },
  { name: 'not an event', where: "event != '$pageview'", hand: "e.event <> '$pageview'" },
  { name: 'property is', where: "properties.plan = 'pro'", hand: `${P('plan')} = 'pro'` },
  { name: 'property is not', where: "properties.plan != 'pro'", hand: `${P('plan')} is distinct from 'pro'` },
  {
    name: 'property is one of',
    where: "properties.plan in ('pro', 'free')",
    hand: `${P('plan')} in ('pro', 'free')`,
  },
  { name: 'property is set', where: 'properties.plan != null', hand: `${P('plan')} is not null` },
  { name: 'property is not set', where: 'properties.nothing = null', hand: `${P('nothing')} is null` },
  {
    name: 'property contains',
    where: "toString(properties.$current_url) ilike '%docs%'",
    hand: `${P('$current_url')} ilike '%docs%'`,
  },
  {
    name: 'property does not contain',
    where: "toString(properties.$current_url) not ilike '%docs%'",
    hand: `(${P('$current_url')} ilike '%docs%') is not true`,
  },
  {
    name: 'property matches',
    where: "match(toString(properties.$current_url), '^https://[a-z.]+/docs/')",
    hand: `${P('$current_url')} ~ '^https://[a-z.]+/docs/'`,
  },
  {
    name: 'property is greater',
    where: 'properties.price > 50',
    hand: `case when pg_input_is_valid(${P('price')}, 'float8') then ${P('price')}::float8 end > 50`,
  },
  {
    name: 'person property',
    where: "person.properties.email ilike '%@x.io'",
    hand: "(e.person_properties ->> 'email') ilike '%@x.io'",
  },
  { name: 'session', where: "$session_id = 's-77'", hand: `e.session_id = 's-77'` },
  {
    name: 'time range',
    where: "timestamp >= '2026-03-10' and timestamp < '2026-03-12'",
    hand: "e.timestamp >= timestamptz '2026-03-10 00:00+00' and e.timestamp < timestamptz '2026-03-12 00:00+00'",
  },
  {
    name: 'several at once',
    where: "event = '$pageview' and properties.plan = 'pro' and timestamp > '2026-03-05'",
    hand: `e.event = '$pageview' and ${P('plan')} = 'pro' and e.timestamp > timestamptz '2026-03-05 00:00+00'`,
  },
  {
    name: 'test accounts',
    where: "event = '$pageview' and person.properties.email not ilike '%@x.io%'",
    hand: "e.event = '$pageview' and ((e.person_properties ->> 'email') ilike '%@x.io%') is not true",
  },
  {
    name: 'columns of an export',
    where: "event = 'signup'",
    hand: "e.event = 'signup'",
    select: [
      'max(length(properties.plan)), max(properties.$browser), max(toString(uuid))',
      `max(octet_length(${P('plan')}))::bigint, max(${P('$browser')} collate "C"), max(e.uuid::text collate "C")`,
    ],
  },
  {
    name: 'days',
    where: "event = '$pageview'",
    hand: "e.event = '$pageview'",
    select: [
      'uniq(toStartOfDay(timestamp))',
      "count(distinct date_trunc('day', e.timestamp at time zone 'UTC'))",
    ],
  },
];
