import { parseDate } from '../../values/dates.ts';
import { isKnownZone } from '../../values/zones.ts';
import { runtimeFailure } from './errors.ts';
import { isHogDateTime } from './hogvm.ts';
import type { HogValue } from './values.ts';

const known = new Set(
  [...Intl.supportedValuesOf('timeZone'), 'utc', 'gmt', 'local', 'system', 'default', ''].map((name) =>
    name.toLowerCase(),
  ),
);
/** Names that mean no zone, seen so far. */
const strangers = new Set<string>();
const MAX_STRANGERS = 1_000;
const OFFSET = /^(?:utc|gmt)?[+-]\d{1,2}(?::?\d{2})?$/;
const MAX_LENGTH = 64;

/** Where functions take the name of a zone. */
const ZONE_ARGUMENT = new Map([
  ['toTimeZone', 1],
  ['toDateTime', 1],
  ['toUnixTimestamp', 1],
  ['toUnixTimestampMilli', 1],
  ['formatDateTime', 2],
]);

/**
 * The library's date package remembers every name of a zone for ever, also of those that are none: names
 * made by a program must come to an end. The usual ones and a number of others pass.
 */
export function checkZones(name: string, args: HogValue[]): void {
  const at = ZONE_ARGUMENT.get(name);
  if (at !== undefined) checkZone(args[at]);
  for (const one of args) if (isHogDateTime(one)) checkZone(one.zone);
}

function checkZone(zone: unknown): void {
  if (typeof zone !== 'string') return;
  const lower = zone.toLowerCase();
  if (known.has(lower) || OFFSET.test(lower)) return;
  if (strangers.has(zone)) return;
  // Older names of zones (`US/Pacific`) are in no list.
  if (zone.length <= MAX_LENGTH && isKnownZone(zone)) {
    known.add(lower);
    return;
  }
  if (zone.length > MAX_LENGTH || strangers.size >= MAX_STRANGERS) {
    throw runtimeFailure(`Unknown time zone: ${zone.slice(0, MAX_LENGTH)}`);
  }
  strangers.add(zone);
}

/**
 * Seconds since 1970 of a text in a zone. Of a time that the clocks show twice the library takes one or the
 * other by the season in which it is asked. null: it is left to the library.
 */
export function secondsIn(text: HogValue, zone: HogValue): number | null {
  if (typeof text !== 'string' || typeof zone !== 'string' || !isKnownZone(zone)) return null;
  const instant = parseDate(text, zone);
  return instant === null ? null : instant / 1000;
}
