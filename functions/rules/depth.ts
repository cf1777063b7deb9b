import { depthOf } from '../../values/function-depth.ts';
import type { Globals } from './globals.ts';

type Event = { properties?: Record<string, unknown> } | undefined;

/** How many functions have led to what a program runs for: its event, or the events of its batch. */
export function depthOfGlobals({ event, items }: Globals): number {
  const others = (items ?? []) as readonly { event?: Event }[];
  return Math.max(
    ...[event as Event, ...others.map((one) => one.event)].map((one) => depthOf(one?.properties)),
  );
}
