// Functions that programs of an installation can call besides those of the language. They are given to a run as its
// `functions`. They depend only on their arguments and on what is passed in here.
import { isKnownBotIp } from './bot-networks.ts';
import { cleanNullValues } from './clean.ts';
import { cityRecord, type FlatPlace } from './places.ts';
import { isKnownBotUserAgent, parseUserAgent } from './user-agents.ts';

export interface HostOptions {
  /** Returns the location of an address as event properties. Without it, no location is known. */
  place?: (address: unknown) => FlatPlace | undefined;
}

export function hostFunctions({ place }: HostOptions = {}): Record<string, (...args: unknown[]) => unknown> {
  return {
    parseUserAgent,
    isKnownBotUserAgent,
    isKnownBotIp,
    cleanNullValues: (value) => cleanNullValues(value),
    geoipLookup: (address) => {
      const found = place?.(address);
      return found === undefined ? null : cityRecord(found);
    },
  };
}
