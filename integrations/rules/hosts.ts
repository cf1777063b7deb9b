// To which hosts the secrets of an integration may go.
import { isLocal, plainAddress } from '../../values/addresses.ts';

const NAME = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?)*$/;
/** Characters that would make something else than a host of a text in a URL. */
const FOREIGN = /[\s/:@?#\\%*[\]]/;
const LONGEST = 253;

/** Returns the form of a host in which hosts are compared: in lower case, without brackets and a dot at its end. */
const plainHost = (host: string): string => (plainAddress(host) ?? host.toLowerCase()).replace(/\.$/, '');

/**
 * Reads an entry of a list of hosts: a name, `*.` and a name, or an address in its usual form. Undefined: it is none of
 * these.
 */
export function readHost(entry: string): string | undefined {
  const text = entry.trim().toLowerCase();
  const address = plainAddress(text);
  if (address !== undefined) return address;
  const isPattern = text.startsWith('*.');
  const name = isPattern ? text.slice(2) : text;
  if (name === '' || name.length > LONGEST || FOREIGN.test(name)) return undefined;
  const host = plainHost(URL.parse(`https://${name}/`)?.hostname ?? '');
  // The URL parser takes `127.1` and `2130706433` for addresses. An entry says plainly what it means.
  if (!NAME.test(host) || plainAddress(host) !== undefined) return undefined;
  // `*.com` would be nearly everybody.
  if (isPattern && !host.includes('.')) return undefined;
  return isPattern ? `*.${host}` : host;
}

/** Hosts that only this machine or its network knows: their traffic need not be encrypted. */
const isInside = (host: string): boolean =>
  plainAddress(host) === undefined ? !host.includes('.') || host.endsWith('.localhost') : isLocal(host);

/**
 * Answers whether the secrets of an integration may go to a URL. Its host must be in the list. Only hosts inside may be
 * reached without TLS.
 */
export function hostAllowed({ hosts }: { hosts: readonly string[] }, url: string | URL): boolean {
  const parsed = URL.parse(String(url));
  if (!parsed) return false;
  const host = plainHost(parsed.hostname);
  if (parsed.protocol !== 'https:' && !(parsed.protocol === 'http:' && isInside(host))) return false;
  return hosts.some((entry) => {
    if (!entry.startsWith('*.')) return entry === host;
    return plainAddress(host) === undefined && host.endsWith(entry.slice(1));
  });
}

/** Answers whether two lists allow the same hosts. */
export const sameHosts = (one: readonly string[], other: readonly string[]): boolean =>
  JSON.stringify([...new Set(one)].sort()) === JSON.stringify([...new Set(other)].sort());
