import { createHash } from 'node:crypto';
import { type CapturedEvent, cut } from '../captured-event.ts';

const NAMESPACE = Buffer.from('932979b465c3442484670b66ec27bc22', 'hex');
const TEXT = /^(.{8})(.{4})(.{4})(.{4})(.{12})$/;

function uuidV5(name: string): string {
  const digest = createHash('sha1').update(NAMESPACE).update(name).digest();
  digest[6] = ((digest[6] as number) & 0x0f) | 0x50;
  digest[8] = ((digest[8] as number) & 0x3f) | 0x80;
  return digest.toString('hex', 0, 16).replace(TEXT, '$1-$2-$3-$4-$5');
}

/** As many ids are kept at hand, so that who comes often is hashed once. */
const REMEMBERED = 20_000;
let remembered = new Map<string, string>();

/**
 * The id that the person of a distinct_id has at first, a uuid of version 5. Events of somebody who is no person yet
 * carry it already, so that nothing needs rewriting when they become one.
 */
export function personId(projectId: number, distinctId: string): string {
  const name = `${projectId}:${distinctId}`;
  const known = remembered.get(name);
  if (known !== undefined) return known;
  if (remembered.size >= REMEMBERED) remembered = new Map();
  const id = uuidV5(name);
  remembered.set(name, id);
  return id;
}

export function groupId(projectId: number, groupTypeIndex: number, key: string): string {
  return uuidV5(`${projectId}:group ${groupTypeIndex}:${key}`);
}

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
interface Merge {
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
