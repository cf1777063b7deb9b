import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';

const PART_BYTES = 1024 * 1024;
/** Results are stored once and read a few times. */
const LEVEL = 3;

/** Compresses a text that comes in pieces, and cuts it into parts of about a megabyte. */
export async function compressed(texts: AsyncIterable<string>, signal: AbortSignal): Promise<Buffer[]> {
  const parts: Buffer[] = [];
  let pieces: Buffer[] = [];
  let size = 0;
  const cut = () => {
    if (size > 0) parts.push(Buffer.concat(pieces));
    pieces = [];
    size = 0;
  };
  await pipeline(
    Readable.from(texts),
    createGzip({ level: LEVEL }),
    async (source: AsyncIterable<Buffer>) => {
      for await (const piece of source) {
        pieces.push(piece);
        size += piece.length;
        if (size >= PART_BYTES) cut();
      }
    },
    { signal },
  );
  cut();
  return parts;
}
