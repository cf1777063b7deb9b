// Secrets follow their address: whoever changes where they travel must know them. Otherwise somebody who may change an
// export, but has never seen its secrets, could have them sent to a server of their own.
import { secretKeys } from '../values/marked-secrets.ts';
import { effectiveConfig, listText, type RawConfig } from './config.ts';
import type { Destination } from './destination.ts';
import { DestinationConfigError } from './errors.ts';

type Addressed = Pick<Destination<unknown>, 'fields' | 'address'>;

/** What decides where the secrets of a configuration travel, and how they are protected. It contains no secret. */
export const addressOf = ({ fields, address }: Addressed, config: RawConfig): Record<string, unknown> =>
  address(effectiveConfig(fields, config));

/**
 * Refuses a change of the address that keeps stored secrets. `sent` is the change itself, `changed` the configuration
 * after it.
 */
export function requireSecrets(
  destination: Addressed,
  stored: RawConfig,
  { sent, changed }: { sent: RawConfig; changed: RawConfig },
): void {
  const kept = secretKeys(destination.fields).filter((key) => {
    const value = stored[key];
    return value !== undefined && value !== null && value !== '' && !Object.hasOwn(sent, key);
  });
  if (kept.length === 0) return;
  const [before, after] = [addressOf(destination, stored), addressOf(destination, changed)];
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  const moved = keys.filter((key) => JSON.stringify(before[key]) !== JSON.stringify(after[key]));
  if (moved.length === 0) return;
  throw new DestinationConfigError(
    `Configuration missing required secrets: ${listText(kept)}. A change of ${listText(moved)} changes where Sluice sends them, so send them along.`,
    kept[0],
  );
}

/** A host as it is compared: names of hosts have no case. */
export const hostAddress = (host: unknown): unknown =>
  typeof host === 'string' ? host.trim().toLowerCase() : host;

/** A URL as it is compared: its host has no case, and the default port can be left out. */
export const urlAddress = (url: unknown): unknown =>
  typeof url === 'string' ? (URL.parse(url.trim())?.href ?? url.trim()) : url;

/** Whether a text is an http or https URL, and contains neither a password nor a signature. */
export function isPlainUrl(text: string): boolean {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol)) return false;
  return !url.username && !url.password && !url.search && !url.hash;
}

/** Tells what is wrong with the URL of a store. The text does not repeat it, since it may contain a secret. */
export const endpointFault = (endpoint: string): string | undefined =>
  isPlainUrl(endpoint)
    ? undefined
    : 'endpoint_url must be an http or https URL without user, password and query';
