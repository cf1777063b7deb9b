import zlib from 'node:zlib';
import { compressBlock } from '../compress-block.ts';
import type { Compression } from '../formats.ts';
import type { Kernel, Region } from '../kernel/kernel.ts';
import { LZ_TABLE_SIZE } from '../kernel/layout.ts';

type Compress = (raw: Buffer) => Promise<Buffer>;

/** Parquet's numbers of codecs; its lz4 is the one that is called LZ4_RAW. */
export const CODECS: Record<Compression | 'none', number> = {
  none: 0,
  snappy: 1,
  gzip: 2,
  brotli: 4,
  zstd: 6,
  lz4: 7,
};

/**
 * Room for the worst that zstd can make of a page: then it reads the page where it is and writes where it should, with
 * nothing in between. What is not written to costs nothing.
 */
const mostOfZstd = (raw: Buffer) => raw.length + (raw.length >> 8) + 64;

/** Room for all of a page's output, as a rule, so that compressing it is one step. */
const roomFor = (raw: Buffer) => Math.max(1024, (raw.length >> 2) + 256);

export function pageCompression(
  kernel: Kernel,
  compression: Compression | null,
  level: number | undefined,
): Compress {
  const { constants } = zlib;
  switch (compression) {
    case null:
      return async (raw) => raw;
    case 'zstd': {
      const params = { [constants.ZSTD_c_compressionLevel]: level ?? 1 };
      return (raw) =>
        compressBlock(
          zlib.createZstdCompress({ params, chunkSize: mostOfZstd(raw), pledgedSrcSize: raw.length }),
          raw,
        );
    }
    case 'gzip':
      return (raw) => compressBlock(zlib.createGzip({ level: level ?? 6, chunkSize: roomFor(raw) }), raw);
    case 'brotli': {
      const params = (raw: Buffer) => ({
        [constants.BROTLI_PARAM_QUALITY]: level ?? 4,
        [constants.BROTLI_PARAM_SIZE_HINT]: raw.length,
      });
      return (raw) =>
        compressBlock(zlib.createBrotliCompress({ params: params(raw), chunkSize: roomFor(raw) }), raw);
    }
    default:
      return blockCompression(kernel, compression);
  }
}

/** LZ4 and Snappy are the kernel's own, and so quick that they need no thread of their own. */
function blockCompression(kernel: Kernel, name: 'lz4' | 'snappy'): Compress {
  const table = kernel.allocate(LZ_TABLE_SIZE);
  let from: Region = kernel.allocate(1024);
  let to: Region = kernel.allocate(1024);
  const fitting = (region: Region, size: number) => {
    if (region.size >= size) return region;
    kernel.free(region);
    return kernel.allocate(size);
  };
  return async (raw) => {
    from = fitting(from, raw.length);
    to = fitting(to, raw.length + Math.ceil(raw.length / 6) + 64);
    kernel.bytes.set(raw, from.at);
    const end = kernel.run[name](from.at, raw.length, to.at, table.at);
    return kernel.copy(to.at, end);
  };
}
