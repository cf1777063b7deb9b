import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  asUtc,
  instantOfWall,
  instantOrJump,
  isKnownZone,
  isNamedZone,
  wallClock,
  zoneOf,
} from '../../values/zones.ts';
import { shownIn } from './shown-in.ts';

const zones = fc.constantFrom(...Intl.supportedValuesOf('timeZone'), 'UTC');
const instants = fc.oneof(
  fc.integer({ min: Date.UTC(1970, 0, 1), max: Date.UTC(2040, 0, 1) }),
  fc.integer({ min: -90_000_000_000_000, max: 90_000_000_000_000 }),
);

test('a wall clock is what the platform shows, in every zone and year', () => {
  fc.assert(
    fc.property(zones, instants, (name, instant) => {
      expect(wallClock(instant, zoneOf(name))).toEqual(shownIn(instant, name));
    }),
    { numRuns: 1_000 },
  );
});

test('the instant of a wall time shows that time, or the clocks skip it', () => {
  fc.assert(
    fc.property(zones, instants, (name, instant) => {
      const zone = zoneOf(name);
      const wall = asUtc(wallClock(instant, zone));
      const found = instantOfWall(wall, zone);
      expect(asUtc(wallClock(found, zone))).toBe(wall);
      // Of a time that is shown twice it is the second.
      expect(found).toBeGreaterThanOrEqual(instant);
      expect(instantOrJump(wall, zone)).toBe(found);
    }),
    { numRuns: 1_000 },
  );
});

test.each([
  ['2026-03-29T02:30:00Z', 'Europe/Berlin', '2026-03-29T01:30:00.000Z', '2026-03-29T01:00:00.000Z'],
  ['2026-10-25T02:30:00Z', 'Europe/Berlin', '2026-10-25T01:30:00.000Z', '2026-10-25T01:30:00.000Z'],
  // Samoa has no 30 December 2011.
  ['2011-12-30T12:00:00Z', 'Pacific/Apia', '2011-12-30T22:00:00.000Z', '2011-12-30T10:00:00.000Z'],
])('%s on the clocks of %s', (shown, name, counted, jumped) => {
  const zone = zoneOf(name);
  const iso = (instant: number) => new Date(instant).toISOString();
  expect(iso(instantOfWall(Date.parse(shown), zone))).toBe(counted);
  expect(iso(instantOrJump(Date.parse(shown), zone))).toBe(jumped);
});

test('the platform knows more spellings than IANA, and offsets', () => {
  expect(['Europe/Berlin', 'europe/berlin', 'PST', 'UTC', '+02:00'].map(isKnownZone)).toEqual([
    true,
    true,
    true,
    true,
    true,
  ]);
  expect(['', 'Mars/Olympus', 'GMT+5'].some(isKnownZone)).toBe(false);
  expect(['Europe/Berlin', 'europe/berlin', 'PST', 'UTC'].every(isNamedZone)).toBe(true);
  expect(['+02:00', '', 'Mars/Olympus'].some(isNamedZone)).toBe(false);
});
