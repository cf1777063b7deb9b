import type { FunctionTypeName } from './types.ts';

/**
 * What happens to an event that a transformation fails on: it is stored as it was, it is left out, or its whole request is
 * refused, so that the client sends it again.
 */
export const ON_ERROR = ['pass', 'drop', 'refuse'] as const;
export type OnError = (typeof ON_ERROR)[number];

/** What a function is given if nobody says anything. */
export const defaultOnError = (type: FunctionTypeName, protects: boolean | undefined): OnError | null => {
  if (type !== 'transformation') return null;
  return protects ? 'refuse' : 'pass';
};
