import { cut } from '../../values/texts.ts';
import type { CapturedEvent } from '../captured-event.ts';

/** Ids that many people share by mistake. Merging on one of them would make a single person of all these people. */
const ILLEGAL = new Set(['[object Object]', '{}', '[]', 'NaN', 'None', 'none', 'null', '0']);
const ILLEGAL_IN_ANY_CASE = new Set([
  ...['anonymous', 'guest', 'distinctid', 'distinct_id', 'id', 'not_authenticated', 'email', 'undefined'],
  ...['true', 'false'],
]);

/** What every browser sends as its distinct_id that may not store one. It names no person. */
export const COOKIELESS_ID = '$posthog_cookieless';

export function isIllegalId(distinctId: string): boolean {
  const trimmed = distinctId.trim();
  if (trimmed === '') return true;
  const quoted = /^(['"])(.*)\1$/s.exec(trimmed);
  const bare = quoted ? (quoted[2] as string) : trimmed;
  return (
    bare.trim() === '' ||
    bare === COOKIELESS_ID ||
    ILLEGAL.has(bare) ||
    ILLEGAL_IN_ANY_CASE.has(bare.toLowerCase())
  );
}

/** Two distinct_ids that belong to one person, according to an event. */
interface Merge {
  /** The person of this distinct_id stays. */
  into: string;
  /** The person of this distinct_id is absorbed. Undefined if somebody logs in of whom nothing is known before. */
  from: string | undefined;
  /**
   * What becomes of a person that was identified before and would be absorbed. `refuse`: both persons stay as they are.
   * `turn`: it absorbs the other person instead, unless that one was identified too. `absorb`: it is absorbed.
   */
  ifIdentified: 'refuse' | 'turn' | 'absorb';
  /** The id because of which nobody may be merged, if there is one. */
  illegal: string | undefined;
}

/** The second id that the event names. Undefined for most events. */
function otherId({ event, properties }: CapturedEvent): unknown {
  if (event === '$identify') return properties.$anon_distinct_id;
  return event === '$create_alias' || event === '$merge_dangerously' ? properties.alias : undefined;
}

/** The merge that the event asks for. Undefined for most events. */
export function mergeOf(captured: CapturedEvent): Merge | undefined {
  const given = otherId(captured);
  if (given === undefined || given === null) return undefined;
  const other = cut(typeof given === 'string' ? given : JSON.stringify(given));
  const { event, distinct_id } = captured;
  if (other.trim() === '' || other === distinct_id) return undefined;
  if (event === '$identify' && other === COOKIELESS_ID) {
    const illegal = isIllegalId(distinct_id) ? distinct_id : undefined;
    return { into: distinct_id, from: undefined, ifIdentified: 'refuse', illegal };
  }
  // An object is what a client sends that forgot to wait for its id or to take the id out of a user. It names nobody.
  const illegal = typeof given === 'object' ? other : [distinct_id, other].find(isIllegalId);
  if (event === '$create_alias') return { into: other, from: distinct_id, ifIdentified: 'turn', illegal };
  const ifIdentified = event === '$identify' ? 'refuse' : 'absorb';
  return { into: distinct_id, from: other, ifIdentified, illegal };
}
