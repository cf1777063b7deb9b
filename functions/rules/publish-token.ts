import { createHmac, timingSafeEqual } from 'node:crypto';

/** How long a preview of a draft allows to publish it. */
export const TOKEN_MINUTES = 15;
const FORMAT = /^([0-9a-z]{1,12})\.([A-Za-z0-9_-]{43})\.([A-Za-z0-9_-]{43})$/;

/** What a token confirms: that somebody has seen this draft beside this version of the function. */
export interface Previewed {
  functionId: string;
  updatedAt: string;
  draftUpdatedAt: string | null;
}

const sign = (key: string, ...parts: string[]) =>
  createHmac('sha256', key).update(JSON.stringify(parts)).digest('base64url');
const stateOf = (key: string, { functionId, updatedAt, draftUpdatedAt }: Previewed) =>
  sign(key, 'state', functionId, updatedAt, draftUpdatedAt ?? '');
const isSame = (one: string, other: string) =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));

/** Makes the token of a preview. `key` belongs to the function. */
export function makeToken(key: string, previewed: Previewed, now: number): string {
  const until = (now + TOKEN_MINUTES * 60_000).toString(36);
  const state = stateOf(key, previewed);
  return [until, state, sign(key, 'token', until, state)].join('.');
}

/** Says what a token is worth. `stale`: it is genuine, and the draft or the function has changed since. */
export function checkToken(
  key: string,
  token: string,
  previewed: Previewed,
  now: number,
): 'valid' | 'stale' | 'expired' | 'invalid' {
  const [, until, state, mac] = FORMAT.exec(token) ?? [];
  if (!until || !state || !mac || !isSame(mac, sign(key, 'token', until, state))) return 'invalid';
  if (Number.parseInt(until, 36) < now) return 'expired';
  return isSame(state, stateOf(key, previewed)) ? 'valid' : 'stale';
}
