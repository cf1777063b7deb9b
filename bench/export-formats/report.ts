import type { Comparison, Way } from './comparisons.ts';
import type { Measured } from './measure.ts';

export interface WayResult {
  way: string;
  rows: number;
  rowsPerSecond: { median: number; least: number; most: number };
  /** The CPU time for each row in microseconds: of the exporter, of Postgres, and of a server at the destination. */
  cpuPerRow: { client: number; postgres: number; server: number };
  peakMegabytes: number | null;
  growthMegabytes: number | null;
  writtenMegabytes: number;
}

export interface Verdict {
  of: string;
  goal: string;
  seen: number;
  /** The same ratio for the CPU time of all processes together. Null for goals that are not about speed. */
  seenPerCpu: number | null;
  met: boolean;
}

export interface ComparisonResult {
  name: string;
  ways: WayResult[];
  verdicts: Verdict[];
}

const median = (numbers: readonly number[]) => {
  const sorted = numbers.toSorted((a, b) => a - b);
  return ((sorted[(sorted.length - 1) >> 1] as number) + (sorted[sorted.length >> 1] as number)) / 2;
};
const rounded = (value: number, digits = 2) => Number(value.toFixed(digits));

function resultOf({ name, rows }: Way, rounds: readonly Measured[]): WayResult {
  const of = (key: 'client' | 'postgres' | 'server') =>
    rounded((median(rounds.map((one) => one[key])) / rows) * 1e6);
  const speeds = rounds.map(({ seconds }) => Math.round(rows / seconds));
  const most = (key: 'peak' | 'growth') => {
    const all = rounds.map((one) => one[key]).filter((one) => one !== undefined);
    return all.length === 0 ? null : Math.round(Math.max(...all));
  };
  return {
    way: name,
    rows,
    rowsPerSecond: {
      median: Math.round(median(speeds)),
      least: Math.min(...speeds),
      most: Math.max(...speeds),
    },
    cpuPerRow: { client: of('client'), postgres: of('postgres'), server: of('server') },
    peakMegabytes: most('peak'),
    growthMegabytes: most('growth'),
    writtenMegabytes: Math.round(median(rounds.map(({ written }) => written))),
  };
}

export function resultsOf(
  { name, ways, goals }: Comparison,
  rounds: ReadonlyMap<string, readonly Measured[]>,
): ComparisonResult {
  const of = (way: string) => rounds.get(way) ?? [];
  const results = ways.map((way) => resultOf(way, of(way.name)));
  const found = (way: string) => results.find((one) => one.way === way) as WayResult;
  const verdicts = goals.map(({ of: way, goal }): Verdict => {
    if ('growthAtMost' in goal) {
      const seen = found(way).growthMegabytes ?? Number.NaN;
      const text = `grows by ≤ ${goal.growthAtMost} MB`;
      return { of: way, goal: text, seen, seenPerCpu: null, met: seen <= goal.growthAtMost };
    }
    // The ratio is computed within each round, so that a disturbance of both exports cancels out.
    const perRow = (one: Measured, name: string) => one.seconds / found(name).rows;
    const cpu = ({ client, postgres, server }: Measured) => client + postgres + server;
    const ratios = of(way).map(
      (one, at) => perRow(of(goal.over)[at] as Measured, goal.over) / perRow(one, way),
    );
    const cpuRatios = of(way).map((one, at) => cpu(of(goal.over)[at] as Measured) / cpu(one));
    const seen = rounded(median(ratios));
    const text = `≥ ${goal.atLeast.toFixed(2)} × ${goal.over}`;
    return { of: way, goal: text, seen, seenPerCpu: rounded(median(cpuRatios)), met: seen >= goal.atLeast };
  });
  return { name, ways: results, verdicts };
}

/** Returns the tables for RESULTS.md. */
export function markdown(results: readonly ComparisonResult[]): string {
  const number = (value: number) => value.toLocaleString('en');
  const ways = results.flatMap(({ ways }) =>
    ways.map((one) => {
      const { median: middle, least, most } = one.rowsPerSecond;
      const { client, postgres, server } = one.cpuPerRow;
      const cpu = [client, postgres, ...(server > 0 ? [server] : [])]
        .map((part) => part.toFixed(2))
        .join(' + ');
      const growth = one.growthMegabytes === null ? '' : ` (+${one.growthMegabytes})`;
      const memory = one.peakMegabytes === null ? '' : `${one.peakMegabytes}${growth}`;
      const written = one.writtenMegabytes || '';
      return `| ${one.way} | ${number(middle)} (${number(least)}–${number(most)}) | ${cpu} | ${memory} | ${written} |`;
    }),
  );
  const verdicts = results.flatMap(({ verdicts }) =>
    verdicts.map(({ of, goal, seen, seenPerCpu, met }) => {
      const figure = seenPerCpu === null ? `${seen} MB` : `${seen.toFixed(2)} ×`;
      const cpu = seenPerCpu === null ? '' : `${seenPerCpu.toFixed(2)} ×`;
      return `| ${of} | ${goal} | ${figure} | ${cpu} | ${met ? 'met' : 'missed'} |`;
    }),
  );
  return [
    '| Way | Rows/s, median (least–most) | CPU µs/row, exporter + Postgres (+ server) | Peak MB (above idle) | Written MB |',
    '| --- | --- | --- | --- | --- |',
    ...ways,
    '',
    '| Way | Goal | Seen | Per CPU | Verdict |',
    '| --- | --- | --- | --- | --- |',
    ...verdicts,
    '',
  ].join('\n');
}
