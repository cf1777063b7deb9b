import type { Queryable } from '../../db/pool.ts';
import type { Finding } from '../../tenancy/product.ts';
import { databaseZone, isKnownZone, ZONE_DATA_VERSION, zoneOf } from '../../values/zones.ts';

const MOST_NAMED = 5;

/** Zones as Postgres calls them, and how far each is ahead of UTC on the days of a year before and two years after now, in seconds. */
const OFFSETS = `
  select zone, days.first, known.zone is not null as is_known,
    (select array_agg(extract(epoch from (day at time zone zone) - (day at time zone 'UTC'))::int order by day)
     from generate_series(days.first, days.first + interval '1095 days', interval '1 day') as day
     where known.zone is not null) as offsets
  from unnest($1::text[]) as used (zone)
  left join (select name as zone from pg_timezone_names) as known using (zone)
  cross join (select date_trunc('day', now() - interval '365 days', 'UTC') as first) as days
  order by zone`;

interface Row {
  zone: string;
  first: string;
  is_known: boolean;
  offsets: number[] | null;
}

/**
 * Compares the zone data of Postgres, which queries use, with those of Node, which cut the intervals of exports. They come from
 * different places, and one may be older.
 */
export async function compareZones(queryable: Queryable): Promise<Finding> {
  const { rows: used } = await queryable.query<{ timezone: string }>(
    'select distinct timezone from projects',
  );
  const names = [...new Set(used.map(({ timezone }) => databaseZone(timezone)))];
  const { rows } = await queryable.query<Row>(OFFSETS, [names]);
  const differences = rows.flatMap(({ zone, first, offsets }) => {
    if (offsets === null) return [`${zone} is unknown to Postgres`];
    if (!isKnownZone(zone)) return [`${zone} is unknown to Sluice`];
    const known = zoneOf(zone);
    const day = (index: number) => Date.parse(first) + index * 86_400_000;
    const index = offsets.findIndex((offset, at) => offset * 1000 !== known.offsetAt(day(at)));
    return index < 0 ? [] : [`${zone} from ${new Date(day(index)).toISOString().slice(0, 10)}`];
  });
  const check = 'time zones';
  if (differences.length === 0) {
    const zones = rows.length === 1 ? 'the time zone' : `the ${rows.length} time zones`;
    return {
      check,
      ok: true,
      sentence: `Postgres knows ${zones} of projects as Sluice does (${ZONE_DATA_VERSION}).`,
    };
  }
  const more = differences.length > MOST_NAMED ? ` and ${differences.length - MOST_NAMED} more` : '';
  return {
    check,
    ok: false,
    sentence: `The zone data of Postgres differ from those of Sluice (${ZONE_DATA_VERSION}): ${differences.slice(0, MOST_NAMED).join(', ')}${more}. Queries of projects in these zones show other local times than exports. Update the older one: Postgres, or the tzdata of its machine, or Sluice.`,
  };
}
