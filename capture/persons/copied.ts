type Properties = Record<string, unknown>;

/** When an event was stored, and where it stands among those that were stored at the same moment. */
export interface Place {
  /** Its inserted_at: microseconds since 2000. */
  stamp: number;
  /** When it happened, in milliseconds. */
  at: number;
}

/** What one event brought and no later one did. */
export interface Layer extends Place {
  values: Properties;
  bytes: number;
}

/** Whether an event is later than another. Of equal ones the second that was read is. */
const isLater = (one: Place, other: Place) =>
  one.stamp === other.stamp ? one.at >= other.at : one.stamp > other.stamp;

/**
 * Adds what another event brought: of each property the value of the latest event stays. Layers are in the order of their events,
 * the latest one first; usually there is a single one, because the events of a visit bring the same properties. Returns how many
 * more bytes the layers take, about.
 */
export function addLayer(layers: Layer[], next: Layer): number {
  let more = next.bytes;
  let at = 0;
  while (at < layers.length && !isLater(next, layers[at] as Layer)) {
    for (const name in (layers[at] as Layer).values) delete next.values[name];
    at += 1;
  }
  layers.splice(at, 0, next);
  for (let below = layers.length - 1; below >= at; below -= 1) {
    const layer = layers[below] as Layer;
    if (below > at) for (const name in next.values) delete layer.values[name];
    if (isEmpty(layer.values)) {
      layers.splice(below, 1);
      more -= layer.bytes;
    }
  }
  return more;
}

function isEmpty(values: Properties): boolean {
  for (const _ in values) return false;
  return true;
}

/** Returns the latest values of layers, without those that are not later than when they were set by name. */
export function latestOf(
  layers: readonly Layer[],
  namedAt: Readonly<Record<string, number>> | null,
): Properties | undefined {
  let latest: Properties | undefined;
  for (const { stamp, values } of layers) {
    for (const name in values) {
      if (namedAt && stamp <= (namedAt[name] ?? -Infinity)) continue;
      latest ??= {};
      latest[name] = values[name];
    }
  }
  return latest;
}
