import { z } from 'zod';
import { COMPRESSIONS, type Compression, FORMATS, type Format } from '../formats/formats.ts';
import { eventNames, listText } from './config.ts';
import { prefixProblem } from './object-keys.ts';

export interface FileOptions {
  prefix: string;
  format: Format;
  compression: Compression | null;
  maxFileBytes: number | undefined;
}

const MEBIBYTE = 1024 * 1024;

/** Why a repeated run of a destination of files leaves one copy, for the documentation. */
export const ONCE_BY_MANIFEST =
  'object keys follow from the export and the interval; nothing is visible before the end; the manifest comes last';

/** The configuration keys of every destination that stores files. */
export const fileFields = {
  file_format: z.string().default('JSONLines').describe('Format of the files: JSONLines, Parquet or CSV.'),
  compression: z
    .string()
    .nullish()
    .describe(
      'Compression of the files: gzip, brotli, zstd, snappy or lz4, depending on the format. Without it, none.',
    ),
  max_file_size_mb: z
    .number()
    .nullish()
    .describe('Maximum size of a file in MiB. Larger intervals become several files.'),
  ...eventNames,
};

interface FileConfig {
  prefix: string;
  file_format: string;
  compression?: string | null | undefined;
  max_file_size_mb?: number | null | undefined;
}

/** Checks the keys of files against each other. For the `superRefine` of a schema with these keys. */
export function checkFileFields(config: FileConfig, context: z.core.$RefinementCtx<unknown>): void {
  const complain = (path: string, message: string) =>
    context.addIssue({ code: 'custom', path: [path], message });
  const supported = COMPRESSIONS[config.file_format as Format];
  if (!Object.hasOwn(COMPRESSIONS, config.file_format)) {
    complain(
      'file_format',
      `File format ${config.file_format} is not supported. Supported file formats are ${listText(FORMATS)}`,
    );
    return;
  }
  const { compression, max_file_size_mb: size } = config;
  if (compression !== null && compression !== undefined && !supported.includes(compression as Compression)) {
    complain(
      'compression',
      `Compression ${compression} is not supported for file format ${config.file_format}. ` +
        `Supported compressions are ${listText(supported)}`,
    );
  }
  if (size !== null && size !== undefined && size < 1)
    complain('max_file_size_mb', `max_file_size_mb must be at least 1, not ${size}`);
  const problem = prefixProblem(config.prefix);
  if (problem) complain('prefix', problem);
}

export function fileOptions(config: FileConfig): FileOptions {
  return {
    prefix: config.prefix,
    format: config.file_format as Format,
    compression: (config.compression ?? null) as Compression | null,
    maxFileBytes: config.max_file_size_mb ? config.max_file_size_mb * MEBIBYTE : undefined,
  };
}
