import { type Zone, zoneOf } from '../values/zones.ts';

/** Intervals follow the zone data of these years; before and after, the clocks keep the offset of the edge. */
export const ZONE_DATA = { from: Date.UTC(1940, 0, 1), to: Date.UTC(2200, 0, 1) };

/** The zone in which a cadence counts its days and weeks. */
export function cadenceZone({ timezone }: { timezone: string }): Zone {
  const zone = zoneOf(timezone);
  return {
    ...zone,
    offsetAt: (instant) => zone.offsetAt(Math.min(Math.max(instant, ZONE_DATA.from), ZONE_DATA.to)),
  };
}
