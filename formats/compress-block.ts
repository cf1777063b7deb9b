import type { Transform } from 'node:stream';
import { freeMemory } from './buffer-pool.ts';

/**
 * Compresses one block on the thread pool. `keep` gets the output in pieces and copies them. The `flush` option of the
 * compressor must already say what ends with the block; a compressor that learns of the end only after the block would
 * first buffer the block. The memory of the output is freed at once. zlib's one-call functions would leave it to the
 * garbage collector, some 60 MB at any time.
 */
export function compressBlock(
  compressor: Transform,
  block: Buffer,
  keep: (pieces: readonly Buffer[]) => Buffer,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    compressor.on('data', (piece: Buffer) => pieces.push(piece));
    compressor.once('error', reject);
    compressor.write(block, (error) => {
      if (error) return;
      const whole = keep(pieces);
      // Smaller pieces share their memory with other buffers.
      for (const piece of pieces) if (piece.buffer.byteLength > Buffer.poolSize) freeMemory(piece);
      compressor.destroy();
      resolve(whole);
    });
  });
}
