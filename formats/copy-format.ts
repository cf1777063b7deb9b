/** The bytes are not those of a COPY, or they end too early. Nothing that was made of them may be used. */
export class BrokenRowsError extends Error {
  override readonly name = 'BrokenRowsError';
  /** A stream that was cut off may be complete at the next attempt. Rows that do not fit their columns stay wrong. */
  readonly retryable: boolean;

  constructor(message: string, options: { retryable: boolean }) {
    super(message);
    this.retryable = options.retryable;
  }
}

export const brokenRows = (what: string, retryable: boolean): BrokenRowsError =>
  new BrokenRowsError(`The stream of rows is broken: ${what}.`, { retryable });

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');

/** A COPY in binary form begins with this: a signature, no flags, no extension. */
export const COPY_HEADER: Buffer = Buffer.concat([SIGNATURE, Buffer.alloc(8)]);

/** Refuses bytes that cannot begin a COPY. Returns whether the header is complete. */
export function checkCopyHeader(bytes: Uint8Array): boolean {
  const seen = Math.min(bytes.length, SIGNATURE.length);
  if (SIGNATURE.compare(bytes, 0, seen, 0, seen) !== 0)
    throw brokenRows('it does not begin as COPY in binary form does', false);
  if (bytes.length < COPY_HEADER.length) return false;
  // No version of Postgres sets flags.
  if (COPY_HEADER.compare(bytes, 0, COPY_HEADER.length) !== 0)
    throw brokenRows('its header has flags that are not known', false);
  return true;
}
