import { PLACE_PROPERTIES, type Place } from '../geoip/database.ts';
import type { TransformEvents } from './transform.ts';

/** Whether the client itself says where the event happened. */
function hasPlace(properties: Record<string, unknown>): boolean {
  return PLACE_PROPERTIES.some((name) => properties[name] !== undefined && properties[name] !== null);
}

/**
 * Adds the place of `$ip` to events, unless they forbid it (`$geoip_disable`). An event that brings a place of its own
 * keeps it: a mixture of two places would be wrong.
 */
export function addPlaces(place: (address: unknown) => Place | undefined): TransformEvents {
  return (_project, events) => {
    for (const { properties } of events) {
      if (properties.$geoip_disable) continue;
      const found = place(properties.$ip);
      if (found && !hasPlace(properties)) Object.assign(properties, found);
    }
    return events;
  };
}
