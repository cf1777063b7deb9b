import type { Transform } from 'node:stream';
import zlib from 'node:zlib';
import { BufferPool } from '../buffer-pool.ts';
import { compressBlock } from '../compress-block.ts';
import type { Compression } from '../formats.ts';
import type { Kernel, Region } from '../kernel/kernel.ts';
import { LZ_TABLE_SIZE } from '../kernel/layout.ts';
import { ThriftWriter } from './thrift.ts';

export const ENCODING = { plain: 0, rle: 3, dictionary: 8 } as const;
const PAGE_TYPE = { data: 0, dictionary: 2 } as const;

/** A page as it stands in the file: its header, then its body. */
export interface Page {
  header: Buffer;
  /** The compressed values, in the memory of the row group. */
  body: Buffer;
  /** The size of header and body before compression. */
  uncompressedBytes: number;
}

interface PageOptions {
  /** The number of levels or, in a dictionary, of entries. */
  values: number;
  encoding: number;
  kind: keyof typeof PAGE_TYPE;
}

export function makePage(raw: number, body: Buffer, { values, encoding, kind }: PageOptions): Page {
  const thrift = new ThriftWriter();
  thrift.i32(1, PAGE_TYPE[kind]);
  thrift.i32(2, raw);
  thrift.i32(3, body.length);
  if (kind === 'data') {
    thrift.struct(5, () => {
      thrift.i32(1, values);
      thrift.i32(2, encoding);
      thrift.i32(3, ENCODING.rle);
      thrift.i32(4, ENCODING.rle);
    });
  } else {
    thrift.struct(7, () => {
      thrift.i32(1, values);
      thrift.i32(2, encoding);
    });
  }
  const header = thrift.finish();
  return { header, body, uncompressedBytes: header.length + raw };
}

const SLAB = 1024 * 1024 - 64;
/** Enough for two row groups: one is written while the next one is made. */
const MOST_FREE = 32;

/** Memory for pages that wait until their row group is complete. Later row groups use its slabs again. */
export class PageMemory {
  readonly #pool = new BufferPool(SLAB, MOST_FREE);

  /** The memory of one row group. */
  begin(): GroupMemory {
    return new GroupMemory(this.#pool);
  }
}

export class GroupMemory {
  readonly #pool: BufferPool;
  #slabs: Buffer[] = [];
  #free: Buffer = Buffer.alloc(0);

  constructor(pool: BufferPool) {
    this.#pool = pool;
  }

  /** Copies the pieces into one buffer that stays valid until `release`. */
  keep(pieces: readonly Uint8Array[]): Buffer {
    const size = pieces.reduce((sum, { length }) => sum + length, 0);
    if (size > this.#free.length) {
      // A page that is larger than a slab gets memory of its own.
      this.#free = this.#pool.take(Math.max(size, SLAB));
      this.#slabs.push(this.#free);
    }
    const kept = this.#free.subarray(0, size);
    this.#free = this.#free.subarray(size);
    let at = 0;
    for (const piece of pieces) {
      kept.set(piece, at);
      at += piece.length;
    }
    return kept;
  }

  /** Call it when nobody reads the memory any more. */
  release(): void {
    for (const slab of this.#slabs) this.#pool.give(slab);
    this.#slabs = [];
    this.#free = Buffer.alloc(0);
  }
}

/** Compresses a page into the memory of its row group. */
export type Compress = (raw: Buffer, memory: GroupMemory) => Promise<Buffer>;

/** The numbers of Parquet's codecs. `lz4` is the codec that Parquet calls LZ4_RAW. */
export const CODECS: Record<Compression | 'none', number> = {
  none: 0,
  snappy: 1,
  gzip: 2,
  brotli: 4,
  zstd: 6,
  lz4: 7,
};

/**
 * The largest output that zstd can make of a page. With this room, zstd reads and writes without buffers in between.
 * Memory that is not written to costs nothing.
 */
const mostOfZstd = (raw: Buffer) => raw.length + (raw.length >> 8) + 64;

/** Room for the whole output of a usual page, so that its compression takes one step. */
const roomFor = (raw: Buffer) => Math.max(1024, (raw.length >> 2) + 256);

const compressed = (compressor: Transform, raw: Buffer, memory: GroupMemory) =>
  compressBlock(compressor, raw, (pieces) => memory.keep(pieces));

export function pageCompression(
  kernel: Kernel,
  compression: Compression | null,
  level: number | undefined,
): Compress {
  const { constants } = zlib;
  switch (compression) {
    case null:
      return async (raw, memory) => memory.keep([raw]);
    case 'zstd': {
      const params = { [constants.ZSTD_c_compressionLevel]: level ?? 1 };
      const flush = constants.ZSTD_e_end;
      return (raw, memory) =>
        compressed(zlib.createZstdCompress({ params, flush, chunkSize: mostOfZstd(raw) }), raw, memory);
    }
    case 'gzip': {
      const options = { level: level ?? 6, flush: constants.Z_FINISH };
      return (raw, memory) =>
        compressed(zlib.createGzip({ ...options, chunkSize: roomFor(raw) }), raw, memory);
    }
    case 'brotli': {
      const params = (raw: Buffer) => ({
        [constants.BROTLI_PARAM_QUALITY]: level ?? 4,
        [constants.BROTLI_PARAM_SIZE_HINT]: raw.length,
      });
      const flush = constants.BROTLI_OPERATION_FINISH;
      return (raw, memory) => {
        const options = { params: params(raw), flush, chunkSize: roomFor(raw) };
        return compressed(zlib.createBrotliCompress(options), raw, memory);
      };
    }
    default:
      return blockCompression(kernel, compression);
  }
}

/** The kernel compresses LZ4 and Snappy itself, so fast that no thread is needed. */
function blockCompression(kernel: Kernel, name: 'lz4' | 'snappy'): Compress {
  const table = kernel.allocate(LZ_TABLE_SIZE);
  let from: Region = kernel.allocate(1024);
  let to: Region = kernel.allocate(1024);
  const fitting = (region: Region, size: number) => {
    if (region.size >= size) return region;
    kernel.free(region);
    return kernel.allocate(size);
  };
  return async (raw, memory) => {
    from = fitting(from, raw.length);
    to = fitting(to, raw.length + Math.ceil(raw.length / 6) + 64);
    kernel.bytes.set(raw, from.at);
    const end = kernel.run[name](from.at, raw.length, to.at, table.at);
    return memory.keep([kernel.bytes.subarray(to.at, end)]);
  };
}
