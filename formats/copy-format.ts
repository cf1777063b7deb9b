/** The bytes that should be a COPY's are not, or end too early: nothing of what they made may be used. */
export class BrokenRowsError extends Error {
  override readonly name = 'BrokenRowsError';
  /** A cut-off stream may come whole another time; rows that do not fit their columns stay as they are. */
  readonly retryable: boolean;

  constructor(message: string, options: { retryable: boolean }) {
    super(message);
    this.retryable = options.retryable;
  }
}

export const brokenRows = (what: string, retryable: boolean): BrokenRowsError =>
  new BrokenRowsError(`The stream of rows is broken: ${what}.`, { retryable });

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1');

/** What a COPY in binary form begins with: signature, no flags, no extension. */
export const COPY_HEADER: Buffer = Buffer.concat([SIGNATURE, Buffer.alloc(8)]);

/** Refuses a beginning, cut off or not, that is not one of a COPY; answers whether the header is complete. */
export function checkCopyHeader(bytes: Uint8Array): boolean {
  const seen = Math.min(bytes.length, SIGNATURE.length);
  if (SIGNATURE.compare(bytes, 0, seen, 0, seen) !== 0)
    throw brokenRows('it does not begin as COPY in binary form does', false);
  if (bytes.length < COPY_HEADER.length) return false;
  // No version of Postgres writes any.
  if (COPY_HEADER.compare(bytes, 0, COPY_HEADER.length) !== 0)
    throw brokenRows('its header has flags that are not known', false);
  return true;
}
