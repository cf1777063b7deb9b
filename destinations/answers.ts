import { pipeline, type Readable, Transform } from 'node:stream';

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

/** Reads the content of an object. Undefined if it is longer than `most` bytes. */
export async function readContent(body: Readable, most: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += (chunk as Buffer).length;
    // Leaving the loop closes the connection.
    if (bytes > most) return undefined;
    chunks.push(chunk as Buffer);
  }
  return Buffer.concat(chunks);
}
