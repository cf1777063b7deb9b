import type { CapturedEvent } from './captured-event.ts';

/**
 * The place between parsing and storing where the events of a request may be changed, added to or left out. It may
 * change the events it is given. A promise only where it must wait: most requests need none.
 */
export type TransformEvents = (
  projectId: number,
  events: CapturedEvent[],
) => CapturedEvent[] | Promise<CapturedEvent[]>;
