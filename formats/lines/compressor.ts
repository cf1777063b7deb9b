import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import { freeMemory } from '../buffer-pool.ts';

/** Compresses the blocks of one file. The caller awaits each block before the next. */
export interface Compressor {
  write(block: Buffer): Promise<Buffer[]>;
  /**
   * Returns the output that is still inside. Undefined for a compressor that never holds any back.
   */
  flush?: () => Promise<Buffer[]>;
  end(): Promise<Buffer[]>;
  /** Takes back a chunk of output that was written. Chunks come back in the order in which they came out. */
  release(chunk: Buffer): void;
  /** Stops the compression. */
  destroy(): void;
}

export const identity = (): Compressor => ({
  write: async (block) => [block],
  end: async () => [],
  release: () => undefined,
  destroy: () => undefined,
});

/** The size of the memory for output. A full piece costs another turn on the thread pool. */
const OUTPUT = 1024 * 1024;

/**
 * Compresses a file into one zstd frame or brotli stream, on the thread pool. Several frames could be compressed in
 * parallel, but some readers, Node's and Python's among them, silently stop after the first.
 */
function streaming(stream: Transform & zlib.Zlib): Compressor {
  let out: Buffer[] = [];
  let failure: Error | undefined;
  let fail: ((error: Error) => void) | undefined;
  stream.on('data', (chunk: Buffer) => out.push(chunk));
  stream.on('error', (error) => {
    failure = error;
    fail?.(error);
  });
  const taken = () => {
    const chunks = out;
    out = [];
    return chunks;
  };
  const step = (start: (done: () => void) => void) =>
    new Promise<Buffer[]>((resolve, reject) => {
      if (failure) return reject(failure);
      fail = reject;
      start(() => resolve(taken()));
    });
  return {
    write: (block) => step((done) => stream.write(block, done)),
    flush: () => step((done) => stream.flush(done)),
    end: () =>
      step((done) => {
        stream.once('end', done);
        stream.end();
      }),
    // This is the last chunk of a piece of memory. The stream goes on with another piece.
    release: (chunk) => {
      if (chunk.byteOffset + chunk.length === OUTPUT && chunk.buffer.byteLength === OUTPUT) freeMemory(chunk);
    },
    destroy: () => stream.destroy(),
  };
}

/** For events, level 1 gives smaller files than level 3 in two thirds of the time, see bench/RESULTS.md. */
export const zstd = (level = 1): Compressor =>
  streaming(
    zlib.createZstdCompress({
      params: { [zlib.constants.ZSTD_c_compressionLevel]: level, [zlib.constants.ZSTD_c_checksumFlag]: 1 },
      chunkSize: OUTPUT,
    }),
  );

export const brotli = (quality = 4): Compressor =>
  streaming(
    zlib.createBrotliCompress({
      params: { [zlib.constants.BROTLI_PARAM_QUALITY]: quality },
      chunkSize: OUTPUT,
      flush: zlib.constants.BROTLI_OPERATION_PROCESS,
    }),
  );
