import { crc32 } from 'node:zlib';

const MEBIBYTE = 1024 * 1024;
/** S3 takes no more parts than this, of at least 5 MiB each but for the last. */
export const MOST_PARTS = 10_000;
const SMALL_PART = 8 * MEBIBYTE;
const LARGE_PART = 64 * MEBIBYTE;
const SMALL_PARTS = 5_000;
/** As much of one file may be on its way at a time. */
export const IN_FLIGHT_BYTES = 32 * MEBIBYTE;

/**
 * The size of a part: the same for all of a file, as some servers insist, up to 39 GiB. Longer files go on in larger
 * parts, so that 10,000 of them hold 351 GiB.
 */
export function partSize(index: number): number {
  return index < SMALL_PARTS ? SMALL_PART : LARGE_PART;
}

/** CRC-32 as S3 takes it: big-endian, in base64. */
export function crc32Text(bytes: Buffer): string {
  const value = Buffer.allocUnsafe(4);
  value.writeUInt32BE(crc32(bytes));
  return value.toString('base64');
}

/** Memory of parts that were sent, for the next ones. */
export class PartBuffers {
  readonly #free: Buffer[] = [];

  take(size: number): Buffer {
    const at = this.#free.findIndex((one) => one.length === size);
    return at < 0 ? Buffer.allocUnsafeSlow(size) : (this.#free.splice(at, 1)[0] as Buffer);
  }

  give(buffer: Buffer): void {
    if (buffer.length === SMALL_PART && this.#free.length < IN_FLIGHT_BYTES / SMALL_PART + 1)
      this.#free.push(buffer);
  }

  clear(): void {
    this.#free.length = 0;
  }
}
