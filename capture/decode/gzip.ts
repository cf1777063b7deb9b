import { gunzip, gunzipSync } from 'node:zlib';
import { DecodeError, MAX_BODY_BYTES, tooLarge } from './limits.ts';

/** Up to here decompressing takes well under a millisecond, less than the way to the thread pool and back. */
const SYNC_INPUT = 32 * 1024;
const SYNC_OUTPUT = 256 * 1024;

export function isGzip(bytes: Buffer): boolean {
  return bytes.length > 2 && bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 0x08;
}

function refusal(error: unknown): DecodeError {
  if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') return tooLarge('the decompressed body');
  return new DecodeError(
    `failed to decode request: invalid GZIP data (${(error as Error).message}): send the whole gzip stream, or no compression`,
  );
}

function inflateElsewhere(bytes: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    // zlib stops at the limit: a bomb costs 20 MB, whatever it would unfold to.
    gunzip(bytes, { maxOutputLength: MAX_BODY_BYTES }, (error, result) => {
      if (error) reject(refusal(error));
      else resolve(result);
    });
  });
}

/** Small bodies at once, large ones on the thread pool. */
export function inflate(bytes: Buffer): Buffer | Promise<Buffer> {
  if (bytes.length > SYNC_INPUT) return inflateElsewhere(bytes);
  try {
    return gunzipSync(bytes, { maxOutputLength: SYNC_OUTPUT });
  } catch (error) {
    if ((error as { code?: string }).code === 'ERR_BUFFER_TOO_LARGE') return inflateElsewhere(bytes);
    throw refusal(error);
  }
}
