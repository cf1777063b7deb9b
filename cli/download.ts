import { createWriteStream } from 'node:fs';
import { rename, rm, stat } from 'node:fs/promises';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream as WebStream } from 'node:stream/web';
import { CommandError } from './context.ts';

/**
 * Writes bytes to a file, and returns how many. The file has its name when it is whole: a download that breaks off leaves nothing,
 * and an older file of that name as it was.
 */
export async function writeDownload(bytes: ReadableStream<Uint8Array>, file: string): Promise<number> {
  const unfinished = `${file}.${process.pid}.part`;
  try {
    await pipeline(
      Readable.fromWeb(bytes as WebStream<Uint8Array>),
      createWriteStream(unfinished, { flags: 'wx', flush: true }),
    );
    const { size } = await stat(unfinished);
    await rename(unfinished, file);
    return size;
  } catch (error) {
    await rm(unfinished, { force: true });
    const { message, cause, code } = error as Error & { cause?: Error; code?: string };
    const isOwn = code !== undefined && /^E[A-Z]+$/.test(code);
    throw new CommandError(
      isOwn
        ? `${file} cannot be written: ${message}`
        : `The result broke off, and ${file} was not written: ${cause?.message || message}. The log of Sluice says why. ` +
            'A wrong query also tells it with a LIMIT and without --output.',
    );
  }
}
