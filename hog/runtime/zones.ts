import { createRequire } from 'node:module';
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
/** Names that are not time zones, and that the date package keeps at the moment. */
const strangers = new Set<string>();
const MAX_STRANGERS = 1_000;
/** The date package of the reference library, in the build that the library loads. */
const { Settings } = createRequire(import.meta.url)('luxon') as { Settings: { resetCaches(): void } };
const OFFSET = /^(?:utc|gmt)?[+-]\d{1,2}(?::?\d{2})?$/;
const MAX_LENGTH = 64;

/** The index of the time zone argument of each function. */
const ZONE_ARGUMENT = new Map([
  ['toTimeZone', 1],
  ['toDateTime', 1],
  ['toUnixTimestamp', 1],
  ['toUnixTimestampMilli', 1],
  ['formatDateTime', 2],
]);

/**
 * Checks time zones in the arguments of a function. The date package keeps every zone name, even invalid ones, until it is
 * told to forget them all. So names are short, and after some that it does not know it is told so.
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
  // The list of supported zones leaves out older names such as `US/Pacific`.
  if (zone.length <= MAX_LENGTH && isKnownZone(zone)) {
    known.add(lower);
    return;
  }
  if (zone.length > MAX_LENGTH) throw runtimeFailure(`Unknown time zone: ${zone.slice(0, MAX_LENGTH)}`);
  if (strangers.size >= MAX_STRANGERS) {
    Settings.resetCaches();
    strangers.clear();
  }
  strangers.add(zone);
}

/**
 * Parses a date text in a time zone and returns the seconds since 1970. The reference library is not used for it: for a
 * time that the clocks show twice, its result depends on the current season. Returns null for all other arguments,
 * which the reference library handles.
 */
export function secondsIn(text: HogValue, zone: HogValue): number | null {
  if (typeof text !== 'string' || typeof zone !== 'string' || !isKnownZone(zone)) return null;
  const instant = parseDate(text, zone);
  return instant === null ? null : instant / 1000;
}
