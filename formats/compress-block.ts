import type { Transform } from 'node:stream';
import { freeMemory } from './buffer-pool.ts';

/**
 * All that a compressor makes of one block, on the thread pool. The compressor's own memory is given back at once:
 * zlib's one-call functions leave theirs to the garbage collector, some 60 MB at any time.
 */
export function compressBlock(compressor: Transform, block: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    compressor.on('data', (chunk: Buffer) => chunks.push(chunk));
    compressor.once('error', reject);
    compressor.once('end', () => {
      const size = chunks.reduce((sum, { length }) => sum + length, 0);
      const whole = Buffer.allocUnsafeSlow(size);
      let at = 0;
      for (const chunk of chunks) at += chunk.copy(whole, at);
      // Smaller ones are parts of memory that others have other parts of.
      for (const chunk of chunks) if (chunk.buffer.byteLength > Buffer.poolSize) freeMemory(chunk);
      compressor.destroy();
      resolve(whole);
    });
    compressor.end(block);
  });
}
