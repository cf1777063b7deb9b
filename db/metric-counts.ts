import type { Queryable } from './pool.ts';

/** Which counts to read. */
export interface CountRange {
  /** The first and the last hour, as texts that Postgres reads. */
  after: string;
  before: string;
  kinds?: readonly string[] | undefined;
  names?: readonly string[] | undefined;
}

export interface CountRow {
  kind: string;
  name: string;
  count: number;
}

export interface BucketRow extends CountRow {
  /** When the hour, day or week (from Monday) begins, in UTC. */
  bucket: string;
}

/** Whose counts: a project, and a thing in it. */
export type Owner = readonly [projectId: number, id: string];

const valuesOf = (owner: Owner, { after, before, kinds, names }: CountRange) => [
  ...owner,
  after,
  before,
  kinds && kinds.length > 0 ? kinds : null,
  names && names.length > 0 ? names : null,
];

/**
 * Reads a table of counts by hour. The names of the table and of the column with the owner's id come from our code and never
 * from a request.
 */
export function metricCounts(table: string, ownerColumn: string) {
  const where = `project_id = $1 and ${ownerColumn} = $2 and hour >= date_trunc('hour', $3::timestamptz)
    and hour <= $4::timestamptz and ($5::text[] is null or kind = any($5)) and ($6::text[] is null or name = any($6))`;
  return {
    /** Lists the counts of each hour, day or week. Those without any are left out. */
    async list(
      queryable: Queryable,
      owner: Owner,
      range: CountRange,
      bucket: 'hour' | 'day' | 'week',
    ): Promise<BucketRow[]> {
      const { rows } = await queryable.query(
        `select date_trunc($7, hour, 'UTC') as bucket, kind, name, sum(count)::bigint as count
         from ${table} where ${where} group by 1, kind, name order by 1, kind, name`,
        [...valuesOf(owner, range), bucket],
      );
      return rows;
    },
    async totals(queryable: Queryable, owner: Owner, range: CountRange): Promise<CountRow[]> {
      const { rows } = await queryable.query(
        `select kind, name, sum(count)::bigint as count from ${table} where ${where}
         group by kind, name order by kind, name`,
        valuesOf(owner, range),
      );
      return rows;
    },
  };
}
