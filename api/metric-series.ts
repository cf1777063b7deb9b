// Counts over time, as the routes of several products show them.
import { z } from 'zod';
import { errors } from './errors.ts';
import { instantOf, millisecondsOf, moment } from './moment.ts';
import { bucketLabel, bucketsWithin } from './time-buckets.ts';

const MOST_BUCKETS = 10_000;

const list = (text: string) =>
  text
    .split(',')
    .map((one) => one.trim())
    .filter((one) => one !== '');
const names = (description: string) =>
  z.string().transform(list).optional().meta({ type: 'string', description });

const interval = z.enum(['hour', 'day', 'week']).optional();

/** The query of sums. `kinds` and `names` are those that the product counts. */
export const totalsQuery = (kinds: readonly string[], counted: readonly string[]) =>
  z.strictObject({
    after: moment.meta({ description: 'Counts from the hour of this time on. Default: `-7d`.' }),
    before: moment.meta({ description: 'Counts up to the hour of this time. Default: now.' }),
    kind: names(`Only counts of these kinds, separated by commas: ${quoted(kinds)}.`),
    name: names(`Only counts with these names, separated by commas: ${quoted(counted)}.`),
    breakdown_by: z
      .enum(['kind', 'name'])
      .optional()
      .meta({ description: 'Whether to group the counts by kind or by name. Default: `kind`.' }),
    interval: interval.meta({
      description: 'Has no effect. Clients ask for sums with the query that they send for counts over time.',
    }),
  });
type TotalsQuery = z.output<ReturnType<typeof totalsQuery>>;

const quoted = (words: readonly string[]) => words.map((word) => `\`${word}\``).join(', ');

/** The query of counts over time. */
export const seriesQuery = (kinds: readonly string[], counted: readonly string[]) =>
  totalsQuery(kinds, counted).extend({
    interval: interval.meta({ description: 'The time that each value covers. Default: `day`.' }),
  });

export const series = z
  .object({
    labels: z.array(z.string()),
    series: z.array(z.object({ name: z.string(), values: z.array(z.int()) })),
  })
  .meta({ id: 'MetricSeries' });
export const totals = z.object({ totals: z.record(z.string(), z.int()) }).meta({ id: 'MetricTotals' });

/** What of a query the database is asked. */
export interface CountRange {
  after: string;
  before: string;
  kinds: readonly string[];
  names: readonly string[];
}

export const rangeOf = (query: TotalsQuery): CountRange => ({
  after: query.after ?? (instantOf('-7d') as string),
  before: query.before ?? new Date().toISOString(),
  kinds: query.kind ?? [],
  names: query.name ?? [],
});

interface Counted {
  kind: string;
  name: string;
  count: number;
}

/** Reads counts, and returns series that have a value for each bucket. */
export async function seriesOf(
  { interval = 'day', breakdown_by: by = 'kind', ...query }: z.output<ReturnType<typeof seriesQuery>>,
  read: (range: CountRange, interval: 'hour' | 'day' | 'week') => Promise<(Counted & { bucket: string })[]>,
): Promise<z.output<typeof series>> {
  const range = rangeOf(query);
  const starts = bucketsWithin(
    interval,
    millisecondsOf(range.after),
    millisecondsOf(range.before),
    MOST_BUCKETS,
  );
  if (!starts) {
    throw errors.validation(
      'invalid_input',
      `This range has more than ${MOST_BUCKETS} values. Choose a longer interval or a shorter range.`,
      'interval',
    );
  }
  const positions = new Map(starts.map((start, index) => [start, index]));
  const found = new Map<string, number[]>();
  for (const row of await read(range, interval)) {
    const index = positions.get(Date.parse(row.bucket));
    if (index === undefined) continue;
    const values = found.get(row[by]) ?? starts.map(() => 0);
    values[index] = (values[index] ?? 0) + row.count;
    found.set(row[by], values);
  }
  return {
    labels: starts.map((start) => bucketLabel(interval, start)),
    series: [...found].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, values]) => ({ name, values })),
  };
}

/** Adds counts up by kind or by name. */
export function totalsOf(
  { breakdown_by: by = 'kind' }: Pick<TotalsQuery, 'breakdown_by'>,
  rows: readonly Counted[],
): z.output<typeof totals> {
  const sums: Record<string, number> = {};
  for (const row of rows) sums[row[by]] = (sums[row[by]] ?? 0) + row.count;
  return { totals: sums };
}
