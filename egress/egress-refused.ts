/**
 * Sluice refuses to connect to this host. A retry does not help: the operator must allow the host, or the user must
 * choose another one.
 */
export class EgressRefusedError extends Error {
  override name = 'EgressRefusedError';
  readonly code = 'EGRESS_REFUSED';
  readonly host: string;
  /** The address that the host resolved to, or the host itself if it is an address. */
  readonly address: string | undefined;

  constructor(host: string, address: string | undefined, reason: string) {
    const place = address === undefined || address === host ? host : `${host} (${address})`;
    super(`Connections to ${place} are not allowed: ${reason}`);
    this.host = host;
    this.address = address;
  }
}

interface Chained {
  cause?: unknown;
  errors?: unknown;
}

/** Yields an error and all its causes, including the errors of an AggregateError. */
export function* causesOf(error: unknown, depth = 0): Generator<object> {
  if (typeof error !== 'object' || error === null || depth > 8) return;
  yield error;
  const { cause, errors } = error as Chained;
  for (const inner of Array.isArray(errors) ? errors : []) yield* causesOf(inner, depth + 1);
  yield* causesOf(cause, depth + 1);
}

/**
 * Returns the refusal among the causes of an error, if there is one. Client libraries wrap it in errors of their own.
 */
export function egressRefusal(error: unknown): EgressRefusedError | undefined {
  for (const one of causesOf(error)) if (one instanceof EgressRefusedError) return one;
  return undefined;
}
