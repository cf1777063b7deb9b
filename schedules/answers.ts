import { status } from '@grpc/grpc-js';

/** Returns the code with which a call to Temporal failed. The errors of its client wrap the answer of the server. */
export function codeOf(error: unknown): status | undefined {
  for (let at = error; typeof at === 'object' && at !== null; at = (at as { cause?: unknown }).cause) {
    const { code } = at as { code?: unknown };
    if (typeof code === 'number') return code;
  }
  return undefined;
}

/** Returns what Temporal said, without what its client adds. */
export function detailsOf(error: unknown): string {
  for (let at = error; typeof at === 'object' && at !== null; at = (at as { cause?: unknown }).cause) {
    const { details } = at as { details?: unknown };
    if (typeof details === 'string' && details !== '') return details;
  }
  return (error as Error).message;
}

const DENIED = new Set<status | undefined>([status.PERMISSION_DENIED, status.UNAUTHENTICATED]);
const PASSING = new Set<status | undefined>([
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
  status.CANCELLED,
  status.ABORTED,
]);

/** Whether Temporal answers and does not let Sluice do this. */
export const isDenied = (error: unknown): boolean => DENIED.has(codeOf(error));

/** Whether this Temporal, or what stands before it, does not offer this to Sluice. Asking again changes nothing. */
export const isWithheld = (error: unknown): boolean =>
  isDenied(error) || codeOf(error) === status.UNIMPLEMENTED;

/** Whether the next try may succeed without anybody's help. An error without a code never reached Temporal. */
export const isPassing = (error: unknown): boolean => {
  const code = codeOf(error);
  return code === undefined || PASSING.has(code);
};
