export type Format = 'JSONLines' | 'Parquet' | 'CSV';
export type Compression = 'gzip' | 'zstd' | 'brotli' | 'snappy' | 'lz4';

/**
 * The possible compressions of each format. Parquet compresses its pages, the other formats the whole file. Messages
 * list them in this order.
 */
export const COMPRESSIONS: Record<Format, readonly Compression[]> = {
  Parquet: ['zstd', 'lz4', 'snappy', 'gzip', 'brotli'],
  JSONLines: ['gzip', 'brotli', 'zstd'],
  CSV: ['gzip', 'brotli', 'zstd'],
};
export const FORMATS = Object.keys(COMPRESSIONS) as Format[];

const EXTENSIONS: Record<Format, string> = { JSONLines: 'jsonl', CSV: 'csv', Parquet: 'parquet' };
const COMPRESSED: Partial<Record<Compression, string>> = { gzip: 'gz', zstd: 'zst', brotli: 'br' };

/**
 * The extension of file names without the first dot, such as `jsonl.zst`. Parquet has no extension for its
 * compression.
 */
export function fileExtension(format: Format, compression: Compression | null): string {
  const inner = compression === null || format === 'Parquet' ? undefined : COMPRESSED[compression];
  return inner ? `${EXTENSIONS[format]}.${inner}` : EXTENSIONS[format];
}

/** All extensions that `fileExtension` can return. */
export const FILE_EXTENSIONS: readonly string[] = [
  ...new Set(
    FORMATS.flatMap((format) => [null, ...COMPRESSIONS[format]].map((one) => fileExtension(format, one))),
  ),
];
