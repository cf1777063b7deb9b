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

/** The refusal behind an error that a client library made of it, if there is one. */
export function egressRefusal(error: unknown): EgressRefusedError | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth += 1) {
    if (at instanceof EgressRefusedError) return at;
    if (at instanceof AggregateError) {
      const inner = at.errors.map(egressRefusal).find(Boolean);
      if (inner) return inner;
    }
  }
  return undefined;
}
