import { LRUCache } from 'lru-cache';
import { partitionNamed } from './event-partitions.ts';
import type { Queryable } from './pool.ts';

export const WEEK_MILLISECONDS = 7 * 86_400_000;

/** A sealed week. In milliseconds since 1970. */
export interface SealedWeek {
  /** When its events came in: from then on, and before the next instant. */
  from: number;
  to: number;
  /** The weeks of the times of the project's events in it, counted from 1970-01-01. Null: they can have any time. */
  weeks: readonly number[] | null;
}

/** Events that came in from an instant on, and before another one. Null: there is no such bound. */
export interface StoredRange {
  from: number | null;
  to: number | null;
}

/** More ranges would cost more than the weeks that they leave out. */
const MOST_RANGES = 8;

/** Returns which times the events of a project have in each sealed week, oldest week first. */
export async function readSealedWeeks(queryable: Queryable, projectId: number): Promise<SealedWeek[]> {
  const { rows } = await queryable.query(
    `select w.partition, case when s.project_id is null then '{}' else s.weeks end as weeks
     from event_weeks w left join event_spans s on s.partition = w.partition and s.project_id = $1
     where w.sealed_at is not null order by 1`,
    [projectId],
  );
  return rows.map(({ partition, weeks }) => {
    const { from, to } = partitionNamed(partition);
    return { from: from.getTime(), to: to.getTime(), weeks };
  });
}

/** So many projects that ask often are remembered. */
const MOST_PROJECTS = 200;

interface Remembered {
  /** Differs when a week was sealed or dropped. */
  stamp: string;
  weeks: SealedWeek[];
}

const remembered = new WeakMap<Queryable, LRUCache<number, Remembered>>();

/**
 * The same for those who ask often. It reads the weeks again only after one was sealed or dropped. `pool` is the one that a client
 * is from.
 */
export async function sealedWeeks(
  queryable: Queryable,
  projectId: number,
  pool: Queryable = queryable,
): Promise<SealedWeek[]> {
  const known = remembered.get(pool) ?? new LRUCache<number, Remembered>({ max: MOST_PROJECTS });
  remembered.set(pool, known);
  const { rows } = await queryable.query(
    `select concat_ws(' ', count(*), max(sealed_at)) as stamp from event_weeks where sealed_at is not null`,
  );
  const { stamp } = rows[0] as { stamp: string };
  const before = known.get(projectId);
  if (before?.stamp === stamp) return before.weeks;
  const weeks = await readSealedWeeks(queryable, projectId);
  known.set(projectId, { stamp, weeks });
  return weeks;
}

const weekOf = (at: number | null, otherwise: number) =>
  at === null ? otherwise : Math.floor(at / WEEK_MILLISECONDS);

/** So many weeks of events are read first, then so many in all, and then the others. */
const NEAREST_WEEKS = [4, 20];

/**
 * Divides a range of times for readers who want few events from one end of it. Postgres plans for each week in which events can
 * have come in, and that takes longer than reading a page from a few of them. Returns where to divide it, beginning at that end.
 */
export function nearestEdges(
  weeks: readonly SealedWeek[],
  { from, to }: { from: number; to: number },
  end: 'first' | 'last',
): number[] {
  const [first, last] = [weekOf(from, -Infinity), weekOf(to, Infinity)];
  const known = new Set<number>();
  for (const { weeks: own } of weeks) for (const week of own ?? []) known.add(week);
  const within = [...known].filter((week) => week >= first && week <= last);
  within.sort((one, other) => (end === 'last' ? other - one : one - other));
  return NEAREST_WEEKS.filter((count) => count < within.length).map((count) => {
    const week = within[count - 1] as number;
    return (end === 'last' ? week : week + 1) * WEEK_MILLISECONDS;
  });
}

/** Counts the sealed weeks that can have events of a range of times. */
export function countWeeks(weeks: readonly SealedWeek[], { from, to }: { from: number; to: number }): number {
  const [first, last] = [weekOf(from, -Infinity), weekOf(to, Infinity)];
  return weeks.filter((week) => canHave(week, first, last)).length;
}

const canHave = ({ weeks }: SealedWeek, first: number, last: number): boolean =>
  !weeks || weeks.some((one) => one >= first && one <= last);

/**
 * Returns when events with times in a range can have come in: all the time, but for the sealed weeks whose events have other
 * times. Undefined: no week can be left out.
 */
export function storedRanges(
  weeks: readonly SealedWeek[],
  { from, to }: { from: number | null; to: number | null },
): StoredRange[] | undefined {
  const [first, last] = [weekOf(from, -Infinity), weekOf(to, Infinity)];
  const gaps: { from: number; to: number }[] = [];
  for (const week of weeks) {
    if (canHave(week, first, last)) continue;
    const before = gaps.at(-1);
    if (before?.to === week.from) before.to = week.to;
    else gaps.push({ from: week.from, to: week.to });
  }
  if (gaps.length === 0) return undefined;
  // The longest gaps leave out most.
  const kept = gaps
    .toSorted((one, other) => other.to - other.from - (one.to - one.from))
    .slice(0, MOST_RANGES - 1)
    .sort((one, other) => one.from - other.from);
  const edges = [null, ...kept.map((gap) => gap.to)];
  return edges.map((edge, index) => ({ from: edge, to: kept[index]?.from ?? null }));
}
