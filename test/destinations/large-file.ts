import type { BoundFiles } from '../../destinations/bind.ts';
import { RUN } from './harness.ts';

const CHUNK = 300_001;

/** Writes one file of so many bytes, as an encoder would, in uneven chunks of one buffer that is used again. */
export async function writeLargeFile(
  destination: BoundFiles,
  bytes: number,
  onChunk?: (written: number) => void,
  signal?: AbortSignal,
) {
  const run = await destination.open(RUN, { signal });
  const chunk = Buffer.alloc(CHUNK);
  try {
    const sink = await run.openFile(0);
    for (let written = 0; written < bytes; ) {
      const length = Math.min(chunk.length, bytes - written);
      chunk.fill(written % 251);
      await sink.write(chunk.subarray(0, length));
      written += length;
      onChunk?.(written);
      signal?.throwIfAborted();
    }
    await sink.close();
    const file = { index: 0, rows: 1, bytes, uncompressedBytes: bytes, sha256: 'not looked at' };
    return await run.finish({ files: [file], rows: 1, hash: 'h' });
  } catch (failure) {
    await run.abort();
    throw failure;
  } finally {
    await run.close();
  }
}

/** What such a file contains. */
export function largeFile(bytes: number): Buffer {
  const all = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += CHUNK) all.fill(at % 251, at, Math.min(bytes, at + CHUNK));
  return all;
}
