import type { Transform } from 'node:stream';
import { freeMemory } from './buffer-pool.ts';

/**
 * What a compressor makes of one block, on the thread pool; `keep` is given it in pieces and copies them. The compressor
 * must have been made with the `flush` that ends what is to end with the block: told of the end only after the block, it
 * would have put the block aside first. Its memory is given back at once: zlib's one-call functions leave theirs to the
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
      // Smaller ones are parts of memory that others have other parts of.
      for (const piece of pieces) if (piece.buffer.byteLength > Buffer.poolSize) freeMemory(piece);
      compressor.destroy();
      resolve(whole);
    });
  });
}
