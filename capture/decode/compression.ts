import type { Transform } from 'node:stream';
import * as zlib from 'node:zlib';
import { DecodeError, MAX_BODY_BYTES, type Memory, tooLarge } from './limits.ts';

export type Compression = 'gzip' | 'deflate' | 'br' | 'zstd';

/** Up to these sizes, decompression takes well under a millisecond. The thread pool would take longer. */
const SYNC_INPUT = 32 * 1024;
const SYNC_OUTPUT = 256 * 1024;
/** Large output comes in pieces of this size, and each is counted before the next one is made. */
const PIECE = 512 * 1024;
/** The window of a zstd frame may have 32 MiB, which is more than any accepted body needs. */
const WINDOW = { params: { [zlib.constants.ZSTD_d_windowLogMax]: 25 } };

interface Method {
  /** As it is called in error messages. */
  label: string;
  now(bytes: Buffer, options: object): unknown;
  stream(options: object): Transform & { bytesWritten: number };
}

const ZLIB: Method = { label: 'deflate', now: zlib.inflateSync, stream: zlib.createInflate };
const RAW: Method = { label: 'deflate', now: zlib.inflateRawSync, stream: zlib.createInflateRaw };
const METHODS: Record<Exclude<Compression, 'deflate'>, Method> = {
  gzip: { label: 'GZIP', now: zlib.gunzipSync, stream: zlib.createGunzip },
  br: { label: 'br', now: zlib.brotliDecompressSync, stream: zlib.createBrotliDecompress },
  zstd: {
    label: 'zstd',
    now: (bytes, options) => zlib.zstdDecompressSync(bytes, { ...options, ...WINDOW }),
    stream: (options) => zlib.createZstdDecompress({ ...options, ...WINDOW }),
  },
};

export function isGzip(bytes: Buffer): boolean {
  return bytes.length > 2 && bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 0x08;
}

export function isZstd(bytes: Buffer): boolean {
  return bytes.length > 3 && bytes.readUInt32LE(0) === 0xfd2fb528;
}

/**
 * Whether the bytes begin with the header of zlib. Deflate without one never begins like this: it would be a stored
 * block whose unused bits are not zero.
 */
function isZlib(bytes: Buffer): boolean {
  return bytes.length > 1 && ((bytes[0] as number) & 0x8f) === 0x08 && bytes.readUInt16BE(0) % 31 === 0;
}

/** `deflate` means deflate in the format of zlib, but some clients send it bare. */
function methodOf(compression: Compression, bytes: Buffer): Method {
  if (compression !== 'deflate') return METHODS[compression];
  return isZlib(bytes) ? ZLIB : RAW;
}

/**
 * Decompresses small bodies at once, and large ones on the thread pool. No more than the largest body is ever made,
 * and memory for it is asked for piece by piece, so that a decompression bomb costs no more than an honest body.
 */
export function decompress(
  bytes: Buffer,
  compression: Compression,
  memory: Memory | undefined,
): Buffer | Promise<Buffer> {
  const method = methodOf(compression, bytes);
  const invalid = (why: string) =>
    new DecodeError(
      `invalid_${compression}`,
      `failed to decode request: invalid ${method.label} data (${why}): send the whole stream, or no compression`,
    );
  const checked = (used: number, result: Buffer): Buffer => {
    // Zlib reads several gzip streams as one, and ignores padding behind them. The others end with the first stream.
    if (used < bytes.length && compression !== 'gzip')
      throw invalid(`${bytes.length - used} bytes follow its end`);
    return result;
  };
  if (bytes.length > SYNC_INPUT) return inPieces(bytes, method, memory, invalid, checked);
  let result: { buffer: Buffer; engine: { bytesWritten: number } };
  try {
    result = method.now(bytes, { info: true, maxOutputLength: SYNC_OUTPUT }) as typeof result;
  } catch (error) {
    if ((error as { code?: string }).code !== 'ERR_BUFFER_TOO_LARGE') throw invalid((error as Error).message);
    return inPieces(bytes, method, memory, invalid, checked);
  }
  memory?.grow(result.buffer.length);
  return checked(result.engine.bytesWritten, result.buffer);
}

async function inPieces(
  bytes: Buffer,
  method: Method,
  memory: Memory | undefined,
  invalid: (why: string) => DecodeError,
  checked: (used: number, result: Buffer) => Buffer,
): Promise<Buffer> {
  await memory?.unpack();
  const stream = method.stream({ chunkSize: PIECE });
  const pieces: Buffer[] = [];
  let size = 0;
  const done = new Promise<void>((resolve, reject) => {
    stream.on('data', (piece: Buffer) => {
      size += piece.length;
      try {
        if (size > MAX_BODY_BYTES) throw tooLarge('the decompressed body');
        memory?.grow(piece.length);
      } catch (error) {
        stream.destroy();
        reject(error);
        return;
      }
      pieces.push(piece);
    });
    stream.once('end', resolve);
    stream.once('error', (error) => reject(invalid(error.message)));
  });
  stream.end(bytes);
  await done;
  return checked(stream.bytesWritten, Buffer.concat(pieces, size));
}
