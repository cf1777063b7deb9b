/** Sluice does not connect there. Trying again changes nothing: the operator has to allow it, or name another host. */
export class EgressRefusedError extends Error {
  override name = 'EgressRefusedError';
  readonly code = 'EGRESS_REFUSED';
  readonly host: string;
  /** What the host resolved to; the host itself if it is an address. */
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

/** An error, what caused it, and what that was caused by; also where several were made one (AggregateError). */
export function* causesOf(error: unknown, depth = 0): Generator<object> {
  if (typeof error !== 'object' || error === null || depth > 8) return;
  yield error;
  const { cause, errors } = error as Chained;
  for (const inner of Array.isArray(errors) ? errors : []) yield* causesOf(inner, depth + 1);
  yield* causesOf(cause, depth + 1);
}

/** The refusal behind an error that a client library made of it, if there is one. */
export function egressRefusal(error: unknown): EgressRefusedError | undefined {
  for (const one of causesOf(error)) if (one instanceof EgressRefusedError) return one;
  return undefined;
}
