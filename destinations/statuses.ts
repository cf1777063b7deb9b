import type { DestinationErrorCode } from './errors.ts';

/**
 * What a status of HTTP means if a store says nothing more exact about it. Undefined: the status is no failure, or one
 * that only the store can explain.
 */
export function meaningOf(status: number | undefined): [DestinationErrorCode, string] | undefined {
  if (status === undefined) return undefined;
  if (status === 429 || status === 503) return ['throttled', `the server answered ${status}`];
  if (status === 408) return ['timed-out', 'the server answered 408'];
  if (status >= 500) return ['unavailable', `the server answered ${status}`];
  if (status === 401 || status === 403) return ['denied', 'access denied'];
  if (status === 404) return ['missing', 'not found'];
  return undefined;
}

/** Whether a client says that a connection was cut, or that an answer ends too early. */
export const isCut = (message: string): boolean =>
  /^aborted$|premature close|terminated|socket hang up|parse error/i.test(message);
