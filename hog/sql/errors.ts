import type { Span } from '../ast/index.ts';
import { SourceError } from '../errors.ts';

/** Creates the error for a query that is invalid in this schema or with these types. */
export const fault = (reason: string, span?: Span): SourceError =>
  new SourceError('compile', reason, undefined, span ?? null);

/** Creates the error for a feature of HogQL that Sluice does not support. */
export const unsupported = (what: string, span?: Span): SourceError =>
  new SourceError('unsupported', `${what} is not supported`, undefined, span ?? null);

const MAX_SHOWN = 60;

/** Quotes a name of the source. Cuts long names. */
export const quote = (name: string): string =>
  name.length > MAX_SHOWN ? `'${name.slice(0, MAX_SHOWN)}…'` : `'${name}'`;

/** Returns ` (perhaps you meant 'x')` with the most similar name, or an empty text if none is similar. */
export function suggestion(name: string, candidates: Iterable<string>): string {
  if (name.length > MAX_SHOWN) return '';
  const wanted = name.toLowerCase();
  let best: string | null = null;
  let distance = Math.max(1, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    const far = editDistance(wanted, candidate.toLowerCase(), distance);
    if (far < distance) [best, distance] = [candidate, far];
  }
  return best === null ? '' : ` (perhaps you meant '${best}')`;
}

/**
 * Counts the letters that must be added, removed, changed or swapped to turn one name into the other. Returns `limit`
 * if it is that many or more.
 */
function editDistance(left: string, right: string, limit: number): number {
  if (Math.abs(left.length - right.length) >= limit) return limit;
  let before: number[] = [];
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const row = [i];
    for (let j = 1; j <= right.length; j++) {
      const same = left[i - 1] === right[j - 1];
      let cost = Math.min(previous[j]! + 1, row[j - 1]! + 1, previous[j - 1]! + (same ? 0 : 1));
      if (i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1]) {
        cost = Math.min(cost, before[j - 2]! + 1);
      }
      row.push(cost);
    }
    before = previous;
    previous = row;
  }
  return Math.min(previous[right.length]!, limit);
}
