import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import { freeMemory } from '../buffer-pool.ts';

/** Turns the blocks of one file into what is written. Blocks come one after another; each is awaited. */
export interface Compressor {
  write(block: Buffer): Promise<Buffer[]>;
  /**
   * Everything written so far that has not come out yet; undefined if there never is any, because each block comes out
   * at once.
   */
  flush?: () => Promise<Buffer[]>;
  end(): Promise<Buffer[]>;
  /** Takes back what came out, after it was written. Chunks come back in the order in which they came out. */
  release(chunk: Buffer): void;
  /** Gives up. */
  destroy(): void;
}

export const identity = (): Compressor => ({
  write: async (block) => [block],
  end: async () => [],
  release: () => undefined,
  destroy: () => undefined,
});

/** Output is cut from pieces of this size; a full one costs another turn on the thread pool. */
const OUTPUT = 1024 * 1024;

/**
 * One zstd frame or brotli stream for each file, on the thread pool. Frames could be compressed side by side and
 * concatenated, but some readers, Node's and Python's among them, stop without a word after the first.
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
    // Of a piece of memory the last chunk: the stream goes on with another piece.
    release: (chunk) => {
      if (chunk.byteOffset + chunk.length === OUTPUT && chunk.buffer.byteLength === OUTPUT) freeMemory(chunk);
    },
    destroy: () => stream.destroy(),
  };
}

/** Level 1 is smaller than 3 on events, and takes two thirds of the time: see bench/RESULTS.md. */
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
