/** What the probe asks in each second, in this order. Neighbours differ, so that no second begins with a rush of one kind. */
export const SECOND = [
  ...['batch', 'event', 'alive', 'batch', 'event', 'exports', 'batch', 'event', 'events', 'batch'],
  ...['event', 'persons', 'batch', 'event', 'cold key', 'batch', 'event', 'alive', 'batch', 'event'],
  ...['exports', 'batch', 'event', 'events', 'batch', 'event', 'persons', 'batch', 'event', 'alive'],
  ...['batch', 'event', 'exports', 'batch', 'event', 'events', 'batch', 'event', 'persons', 'cold key'],
  ...['batch', 'alive', 'event', 'exports', 'batch', 'events', 'batch', 'persons', 'alive', 'event'],
] as const;

export type Kind = (typeof SECOND)[number];

export const REQUESTS_PER_SECOND = SECOND.length;
export const COLD_KEYS_PER_SECOND = SECOND.filter((kind) => kind === 'cold key').length;
