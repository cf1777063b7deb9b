import { PLACE_PROPERTIES, type Place } from '../geoip/place.ts';
import type { TransformEvents } from './transform.ts';

/** Whether the client said itself where the event happened. */
function hasPlace(properties: Record<string, unknown>): boolean {
  return PLACE_PROPERTIES.some((name) => properties[name] !== undefined && properties[name] !== null);
}

/**
 * Adds the place of `$ip` to events, unless they ask not to (`$geoip_disable`). An event that brings a place of its
 * own keeps it as it is: half of one place and half of another would be nowhere.
 */
export function addPlaces(place: (address: unknown) => Place | undefined): TransformEvents {
  return (_projectId, events) => {
    for (const { properties } of events) {
      if (properties.$geoip_disable) continue;
      const found = place(properties.$ip);
      if (found && !hasPlace(properties)) Object.assign(properties, found);
    }
    return events;
  };
}
