// Which times the rows of a query can have, as far as its conditions tell without running them. What they tell is an estimate on
// the safe side: no row that passes the conditions is outside of it.
import { parseDate } from '../../values/dates.ts';
import type { Call, Compare, Expr } from '../ast/index.ts';

/** Milliseconds since 1970. Null: there is no bound. */
export interface TimeBounds {
  from: number | null;
  to: number | null;
}

/** What an expression is at least and at most. */
interface Estimate {
  low: number;
  high: number;
}

interface Around {
  /** Returns whether an expression is the time of a row. */
  isTime(expr: Expr): boolean;
  now: number;
  timezone: string;
}

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Zones, changes of clocks, and clocks that differ, all together. */
const MARGIN = 2 * DAY;

/** The shortest and the longest length of each unit. */
const LENGTHS: ReadonlyMap<string, readonly [number, number]> = new Map([
  ['Second', [1000, 1000]],
  ['Minute', [60_000, 60_000]],
  ['Hour', [HOUR, HOUR]],
  ['Day', [DAY, DAY]],
  ['Week', [7 * DAY, 7 * DAY]],
  ['Month', [28 * DAY, 31 * DAY]],
  ['Quarter', [3 * 28 * DAY, 3 * 31 * DAY]],
  ['Year', [365 * DAY, 366 * DAY]],
]);
/** Functions that go back to the beginning of a unit. */
const BEGINNINGS: ReadonlyMap<string, number> = new Map([
  ['toDate', DAY],
  ...[...LENGTHS].map(([unit, [, longest]]): [string, number] => [`toStartOf${unit}`, longest]),
]);
const CONVERSIONS: ReadonlySet<string> = new Set(['toDateTime', 'toDateTime64', 'toDate', 'toTimeZone']);

/** Estimates the times of the rows for which all conditions are true. */
export function timeBounds(conditions: readonly (Expr | null)[], around: Around): TimeBounds {
  const bounds: TimeBounds = { from: null, to: null };
  const notBefore = (at: number) => {
    bounds.from = Math.max(bounds.from ?? at, at);
  };
  const notAfter = (at: number) => {
    bounds.to = Math.min(bounds.to ?? at, at);
  };
  const look = (expr: Expr): void => {
    if (expr.kind === 'and') expr.exprs.forEach(look);
    else if (expr.kind === 'between' && !expr.negated) {
      const spread = spreadOf(expr.expr, around);
      const [low, high] = [estimate(expr.low, around), estimate(expr.high, around)];
      if (spread === null) return;
      if (low) notBefore(low.low - MARGIN);
      if (high) notAfter(high.high + spread + MARGIN);
    } else if (expr.kind === 'compare') {
      const test = sided(expr, around);
      if (!test) return;
      if (test.op !== '<' && test.op !== '<=') notBefore(test.value.low - MARGIN);
      if (test.op !== '>' && test.op !== '>=') notAfter(test.value.high + test.spread + MARGIN);
    }
  };
  for (const one of conditions) if (one) look(one);
  return bounds;
}

const MIRRORED = { '<': '>', '<=': '>=', '>': '<', '>=': '<=', '==': '==' } as const;
type Order = keyof typeof MIRRORED;
const isOrder = (op: Compare['op']): op is Order => Object.hasOwn(MIRRORED, op);

/** Reads a comparison of the time of a row with something that can be estimated. */
function sided(
  { op, left, right }: Compare,
  around: Around,
): { op: Order; value: Estimate; spread: number } | null {
  if (!isOrder(op)) return null;
  const isMirrored = spreadOf(left, around) === null;
  const spread = spreadOf(isMirrored ? right : left, around);
  const value = estimate(isMirrored ? left : right, around);
  return spread === null || value === null ? null : { op: isMirrored ? MIRRORED[op] : op, value, spread };
}

/** Returns how much later than an expression the time of its row can be. Null: it does not follow from that time. */
function spreadOf(expr: Expr, around: Around): number | null {
  if (around.isTime(expr)) return 0;
  if (expr.kind !== 'call' || !expr.args[0]) return null;
  const within = spreadOf(expr.args[0], around);
  const length = BEGINNINGS.get(expr.name) ?? (expr.name === 'toTimeZone' ? 0 : null);
  return within === null || length === null ? null : within + length;
}

function estimate(expr: Expr, around: Around): Estimate | null {
  if (expr.kind === 'alias') return estimate(expr.expr, around);
  if (expr.kind === 'constant') {
    const at = typeof expr.value === 'string' ? parseDate(expr.value, around.timezone) : null;
    return at === null ? null : { low: at, high: at };
  }
  if (expr.kind === 'arithmetic' && (expr.op === '+' || expr.op === '-')) {
    const [time, length] = [estimate(expr.left, around), lengthOf(expr.right)];
    if (!time || !length) return null;
    const [short, long] = expr.op === '+' ? length : ([-length[1], -length[0]] as const);
    return { low: time.low + short, high: time.high + long };
  }
  return expr.kind === 'call' ? called(expr, around) : null;
}

function called({ name, args }: Call, around: Around): Estimate | null {
  const { now } = around;
  if (name === 'now' || name === 'now64') return { low: now, high: now };
  if (name === 'today') return { low: now - DAY, high: now };
  if (name === 'yesterday') return { low: now - 2 * DAY, high: now };
  const beginning = BEGINNINGS.get(name);
  if (!args[0] || (beginning === undefined && !CONVERSIONS.has(name))) return null;
  const given = estimate(args[0], around);
  return given && { low: given.low - (beginning ?? 0), high: given.high };
}

/** Returns the shortest and the longest length of an interval. */
function lengthOf(expr: Expr): readonly [number, number] | null {
  if (expr.kind !== 'call' || !expr.name.startsWith('toInterval')) return null;
  const [count] = expr.args;
  const length = LENGTHS.get(expr.name.slice('toInterval'.length));
  if (!length || count?.kind !== 'constant' || typeof count.value !== 'number' || count.value < 0)
    return null;
  return [count.value * length[0], count.value * length[1]];
}
