export type Format = 'JSONLines' | 'Parquet' | 'CSV';
export type Compression = 'gzip' | 'zstd' | 'brotli' | 'snappy' | 'lz4';

/**
 * What each format can be compressed with, besides not at all. Parquet compresses its pages, the others the file. Both
 * in the order in which messages list them.
 */
export const COMPRESSIONS: Record<Format, readonly Compression[]> = {
  Parquet: ['zstd', 'lz4', 'snappy', 'gzip', 'brotli'],
  JSONLines: ['gzip', 'brotli', 'zstd'],
  CSV: ['gzip', 'brotli', 'zstd'],
};
export const FORMATS = Object.keys(COMPRESSIONS) as Format[];

const EXTENSIONS: Record<Format, string> = { JSONLines: 'jsonl', CSV: 'csv', Parquet: 'parquet' };
const COMPRESSED: Partial<Record<Compression, string>> = { gzip: 'gz', zstd: 'zst', brotli: 'br' };

/** What file names end with, without the first dot: `jsonl.zst`; Parquet is itself whatever its pages are. */
export function fileExtension(format: Format, compression: Compression | null): string {
  const inner = compression === null || format === 'Parquet' ? undefined : COMPRESSED[compression];
  return inner ? `${EXTENSIONS[format]}.${inner}` : EXTENSIONS[format];
}

/** All that `fileExtension` can answer. */
export const FILE_EXTENSIONS: readonly string[] = [
  ...new Set(
    FORMATS.flatMap((format) => [null, ...COMPRESSIONS[format]].map((one) => fileExtension(format, one))),
  ),
];
