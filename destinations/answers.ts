import { createHash } from 'node:crypto';
import { pipeline, type Readable, Transform } from 'node:stream';
import { MOST_SMALL_BYTES } from './destination.ts';
import { DestinationError } from './errors.ts';

/** The answers of a store about its objects are short. To read a longer one would hold up everybody else. */
const MOST_ANSWER_BYTES = 1024 * 1024;

/** A server answers more than anybody reads. */
export class LongAnswerError extends Error {
  override name = 'LongAnswerError';
}

/** The answer, which fails where it becomes longer than anybody reads. */
export function bounded(body: Readable): Readable {
  let bytes = 0;
  const limit = new Transform({
    transform(chunk: Buffer, _encoding, callback) {
      bytes += chunk.length;
      if (bytes > MOST_ANSWER_BYTES)
        callback(new LongAnswerError(`the answer is longer than ${MOST_ANSWER_BYTES} bytes`));
      else callback(null, chunk);
    },
  });
  // Whoever reads hears of the failure from the limit. An answer that is too long closes its connection.
  return pipeline(body, limit, () => undefined);
}

/**
 * Reads the content of a small object of Sluice. Empty if it is larger than those are. `allow` gives the request the time
 * that so many bytes may take.
 */
export async function smallContent(
  body: Readable,
  length: number,
  allow: (bytes: number) => void,
): Promise<Buffer> {
  if (length > MOST_SMALL_BYTES) {
    body.destroy();
    return Buffer.alloc(0);
  }
  allow(length);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += (chunk as Buffer).length;
    // Leaving the loop closes the connection.
    if (bytes > MOST_SMALL_BYTES) return Buffer.alloc(0);
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}

/** Reads an object to its end. Fails if it has another length than the server said, if it said one. */
export async function digestOf(
  body: Readable,
  length: number | undefined,
  where: string,
  signal: AbortSignal | undefined,
): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash('sha256');
  let bytes = 0;
  for await (const chunk of body) {
    signal?.throwIfAborted();
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  if (length !== undefined && bytes !== length)
    throw new DestinationError('interrupted', `${where}: the answer was cut off`);
  return { bytes, sha256: hash.digest('hex') };
}
