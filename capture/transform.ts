import type { CapturedEvent } from './captured-event.ts';

/**
 * Changes, adds or removes events of a request between parsing and storing. It may change the given objects. It returns
 * a promise only if it has to wait, which is rare.
 */
export type TransformEvents = (
  projectId: number,
  events: CapturedEvent[],
) => CapturedEvent[] | Promise<CapturedEvent[]>;
