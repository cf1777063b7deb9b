export type Format = 'JSONLines' | 'Parquet' | 'CSV';
export type Compression = 'gzip' | 'zstd' | 'brotli' | 'snappy' | 'lz4';

/** What each format can be compressed with, besides not at all. Parquet compresses its pages, the others the file. */
export const COMPRESSIONS: Record<Format, readonly Compression[]> = {
  JSONLines: ['gzip', 'zstd', 'brotli'],
  CSV: ['gzip', 'zstd', 'brotli'],
  Parquet: ['zstd', 'gzip', 'snappy', 'lz4', 'brotli'],
};

const EXTENSIONS: Record<Format, string> = { JSONLines: 'jsonl', CSV: 'csv', Parquet: 'parquet' };
const COMPRESSED: Partial<Record<Compression, string>> = { gzip: 'gz', zstd: 'zst', brotli: 'br' };

/** What file names end with, without the first dot: `jsonl.zst`; Parquet is itself whatever its pages are. */
export function fileExtension(format: Format, compression: Compression | null): string {
  const inner = compression === null || format === 'Parquet' ? undefined : COMPRESSED[compression];
  return inner ? `${EXTENSIONS[format]}.${inner}` : EXTENSIONS[format];
}
