import { brokenRows } from './broken-rows.ts';

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
