/**
 * Events lead to functions, and functions to events: those that they capture, and those that they send to an API of Sluice.
 * So that no circle of them is endless, each event says how many functions, one after the other, have led to it, and so does
 * each request of a function. What comes from outside can say a number that is too high, which takes rights away from it. It
 * cannot say one that is too low, because the number of what has none is 0.
 */

/** The property of events that says it. */
const PROPERTY = '$hog_function_execution_count';
/** The header of requests that says it. Programs cannot set it. */
export const DEPTH_HEADER = 'Sluice-Function-Depth';
/** What so many functions have led to leads to no further event. */
export const MOST_DEPTH = 10;

type Properties = Readonly<Record<string, unknown>>;

const bounded = (count: number): number => (count > 0 ? Math.min(Math.ceil(count), MOST_DEPTH) : 0);

/** How many functions have led to an event with these properties: 0 to MOST_DEPTH. */
export function depthOf(properties: Properties | undefined): number {
  const count = properties?.[PROPERTY];
  return typeof count === 'number' || typeof count === 'string' ? bounded(Number(count)) : 0;
}

/** Properties of an event to which so many functions have led. */
export const withDepth = (properties: Properties, depth: number): Record<string, unknown> => ({
  ...properties,
  [PROPERTY]: depth,
});

/** Properties of an event to which at least so many functions have led: they may say more already. */
export const withLeastDepth = (
  properties: Record<string, unknown>,
  depth: number,
): Record<string, unknown> => (depth > depthOf(properties) ? withDepth(properties, depth) : properties);

/** What a request of a function says that runs for an event of this depth. */
export const depthHeader = (depth: number): Record<string, string> => ({ [DEPTH_HEADER]: String(depth + 1) });

/** How many functions have led to a request, by its headers with names in lower case: 0 to MOST_DEPTH + 1. */
export function depthOfRequest(headers: Readonly<Record<string, string | string[] | undefined>>): number {
  const value = headers[DEPTH_HEADER.toLowerCase()];
  return typeof value === 'string' && /^\d{1,9}$/.test(value) ? Math.min(Number(value), MOST_DEPTH + 1) : 0;
}

/** Why a request is refused to which too many functions have led. */
export const TOO_DEEP =
  `${MOST_DEPTH} functions, one after the other, have led to the event for which a function makes this request. ` +
  'So that no circle is endless, it is refused.';
