import type { CapturedEvent } from '../captured-event.ts';
import { cut } from '../parse/event.ts';

/** Ids that many different people share by mistake; joining on one would make one person of all of them. */
const ILLEGAL = new Set(['[object Object]', 'NaN', 'None', 'none', 'null', '0']);
const ILLEGAL_IN_ANY_CASE = new Set([
  ...['anonymous', 'guest', 'distinctid', 'distinct_id', 'id', 'not_authenticated', 'email', 'undefined'],
  ...['true', 'false'],
]);

export function isIllegalId(distinctId: string): boolean {
  const trimmed = distinctId.trim();
  if (trimmed === '') return true;
  const quoted = /^(['"])(.*)\1$/s.exec(trimmed);
  const bare = quoted ? (quoted[2] as string) : trimmed;
  return bare.trim() === '' || ILLEGAL.has(bare) || ILLEGAL_IN_ANY_CASE.has(bare.toLowerCase());
}

/** Two ids that an event says to be one person's. */
export interface Merge {
  /** Whose person stays. */
  into: string;
  /** Whose person is absorbed. */
  from: string;
  /** Also when the absorbed person was identified before. */
  always: boolean;
}

function asDistinctId(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.trim() === '' ? undefined : cut(text);
}

/** What the event wants to be one person; undefined for most events. */
export function mergeOf({ event, distinct_id, properties }: CapturedEvent): Merge | undefined {
  if (event === '$identify') {
    const from = asDistinctId(properties.$anon_distinct_id);
    return from === undefined || from === distinct_id
      ? undefined
      : { into: distinct_id, from, always: false };
  }
  if (event !== '$create_alias' && event !== '$merge_dangerously') return undefined;
  const alias = asDistinctId(properties.alias);
  if (alias === undefined || alias === distinct_id) return undefined;
  return event === '$create_alias'
    ? { into: alias, from: distinct_id, always: false }
    : { into: distinct_id, from: alias, always: true };
}
