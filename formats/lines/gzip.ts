import zlib from 'node:zlib';
import { compressBlock } from '../compress-block.ts';

// A member without name or time, by an unknown system: the same rows make the same bytes everywhere.
const HEADER = Buffer.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff);
/** A last block with nothing in it. */
const LAST = Buffer.of(3, 0);

/**
 * A block compressed by itself, ending at a byte and not being the last. Blocks that are compressed side by side make
 * one gzip member in a row, which even those can read who stop after the first member.
 */
export function deflateBlock(block: Buffer, level: number): Promise<Buffer> {
  const options = { level, flush: zlib.constants.Z_SYNC_FLUSH, chunkSize: 256 * 1024 };
  return compressBlock(zlib.createDeflateRaw(options), block, (pieces) => Buffer.concat(pieces));
}

/** What stands around the blocks of a file. */
export class GzipMember {
  static readonly overhead = HEADER.length + LAST.length + 8;
  #checksum = 0;
  #length = 0;

  begin(): Buffer {
    return HEADER;
  }

  /** To be told of each block as it was before compression. */
  add(block: Buffer): void {
    this.#checksum = zlib.crc32(block, this.#checksum);
    this.#length += block.length;
  }

  end(): Buffer {
    const end = Buffer.alloc(LAST.length + 8);
    LAST.copy(end);
    end.writeUInt32LE(this.#checksum, LAST.length);
    end.writeUInt32LE(this.#length % 2 ** 32, LAST.length + 4);
    return end;
  }
}
