import zlib from 'node:zlib';
import { compressBlock } from '../compress-block.ts';
import type { OutputFiles } from '../output-files.ts';
import type { Compressor } from './compressor.ts';

// No name, no time, an unknown system: so the same rows give the same bytes everywhere.
const HEADER = Buffer.of(0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff);
/** An empty last block. */
const LAST = Buffer.of(3, 0);

/**
 * Compresses a block by itself, so that it ends at a whole byte and is not marked as the last. Blocks that were
 * compressed in parallel form one gzip member in a row. So even a reader that stops after the first member gets all.
 */
function deflateBlock(block: Buffer, level: number): Promise<Buffer> {
  const options = { level, flush: zlib.constants.Z_SYNC_FLUSH, chunkSize: 256 * 1024 };
  return compressBlock(zlib.createDeflateRaw(options), block, (pieces) => Buffer.concat(pieces));
}

/** The header and the trailer around the blocks of a gzip file. */
class GzipMember {
  static readonly overhead = HEADER.length + LAST.length + 8;
  #checksum = 0;
  #length = 0;

  begin(): Buffer {
    return HEADER;
  }

  /** Call it with each block as it was before compression. */
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

interface Block {
  raw: Buffer;
  rows: number;
}

interface BlockFilesOptions {
  files: OutputFiles;
  /** With `level`: gzip, whose blocks are compressed in parallel. Otherwise each file gets a compressor. */
  compression: { level: number } | { compressor: () => Compressor };
  /** The beginning of each file. */
  header: Buffer;
  /** Called with a block's memory when nobody reads it any more. */
  release: (raw: Buffer) => void;
  maxFileBytes: number | undefined;
  /** Whether there is a file without rows when there are none. */
  evenEmpty: boolean;
}

/** So many blocks may be under way at the same time, which is enough for the thread pool. */
const DEPTH = 5;

/**
 * Writes blocks of whole rows into files, in order. It decides on the file when the turn of the block comes, so that a
 * file exceeds its limit by at most one block, and usually stays below it.
 */
export class BlockFiles {
  readonly #options: BlockFilesOptions;
  #pending: Promise<void>[] = [];
  #last: Promise<void> = Promise.resolve();
  #file: TextFile | undefined;

  constructor(options: BlockFilesOptions) {
    this.#options = options;
  }

  /** Resolves when there is room for another block. Rejects if an earlier block failed. */
  async put(block: Block): Promise<void> {
    const { compression } = this.#options;
    const packed = 'level' in compression ? deflateBlock(block.raw, compression.level) : undefined;
    packed?.catch(() => undefined);
    this.#last = this.#last.then(() => this.#write(block, packed));
    this.#last.catch(() => undefined);
    this.#pending.push(this.#last);
    if (this.#pending.length >= DEPTH) await this.#pending.shift();
  }

  async finish(): Promise<void> {
    await this.#last;
    if (this.#options.evenEmpty && this.#options.files.isUnused) this.#file = await this.#begin();
    if (this.#file) await this.#end(this.#file);
  }

  destroy(): void {
    this.#file?.destroy();
  }

  async #write(block: Block, packed: Promise<Buffer> | undefined): Promise<void> {
    const { files, maxFileBytes, release } = this.#options;
    const ready = await packed;
    if (this.#file && maxFileBytes !== undefined && (await this.#file.exceeds(maxFileBytes, block, ready)))
      await this.#end(this.#file);
    this.#file ??= await this.#begin();
    await this.#file.write(block.raw, ready);
    files.progress(block.rows);
    release(block.raw);
  }

  async #begin(): Promise<TextFile> {
    const { files, compression, header } = this.#options;
    const output = await files.open();
    const write = async (chunks: Buffer[], release?: (chunk: Buffer) => void) => {
      for (const chunk of chunks) {
        await output.write(chunk);
        release?.(chunk);
      }
    };
    const file =
      'level' in compression
        ? new GzipFile(write, () => output.bytes)
        : new CompressedFile(compression.compressor(), write, () => output.bytes);
    await file.begin();
    if (header.length === 0) return file;
    const packed = 'level' in compression ? await deflateBlock(header, compression.level) : undefined;
    await file.write(header, packed);
    return file;
  }

  async #end(file: TextFile): Promise<void> {
    await file.end();
    this.#file = undefined;
    await this.#options.files.close(file.raw);
  }
}

type Write = (chunks: Buffer[], release?: (chunk: Buffer) => void) => Promise<void>;

interface TextFile {
  /** The size before compression. */
  raw: number;
  begin(): Promise<void>;
  /** Whether the file would become larger than `max` with this block. */
  exceeds(max: number, block: Block, packed: Buffer | undefined): boolean | Promise<boolean>;
  write(raw: Buffer, packed: Buffer | undefined): Promise<void>;
  end(): Promise<void>;
  destroy(): void;
}

class GzipFile implements TextFile {
  raw = 0;
  readonly #member = new GzipMember();
  readonly #write: Write;
  readonly #bytes: () => number;

  constructor(write: Write, bytes: () => number) {
    this.#write = write;
    this.#bytes = bytes;
  }

  begin(): Promise<void> {
    return this.#write([this.#member.begin()]);
  }

  exceeds(max: number, _block: Block, packed: Buffer | undefined): boolean {
    return this.#bytes() + (packed?.length ?? 0) + GzipMember.overhead > max;
  }

  async write(raw: Buffer, packed: Buffer | undefined): Promise<void> {
    this.#member.add(raw);
    this.raw += raw.length;
    if (packed) await this.#write([packed]);
  }

  end(): Promise<void> {
    return this.#write([this.#member.end()]);
  }

  destroy(): void {}
}

class CompressedFile implements TextFile {
  raw = 0;
  /** Bytes that went into the compressor and may not have come out yet. */
  #inside = 0;
  /** The write of the previous block, while the next one is compressed. */
  #writing: Promise<void> = Promise.resolve();
  readonly #compressor: Compressor;
  readonly #write: Write;
  readonly #bytes: () => number;

  constructor(compressor: Compressor, write: Write, bytes: () => number) {
    this.#compressor = compressor;
    this.#write = write;
    this.#bytes = bytes;
  }

  async begin(): Promise<void> {}

  async exceeds(max: number, { raw }: Block): Promise<boolean> {
    await this.#writing;
    if (this.#bytes() + this.#inside + raw.length <= max) return false;
    if (!this.#compressor.flush) return true;
    await this.#writeAll(await this.#compressor.flush());
    this.#inside = 0;
    const ratio = this.#bytes() / Math.max(1, this.raw);
    return this.#bytes() + raw.length * ratio > max;
  }

  async write(raw: Buffer): Promise<void> {
    this.raw += raw.length;
    if (this.#compressor.flush) this.#inside += raw.length;
    const chunks = await this.#compressor.write(raw);
    await this.#writing;
    this.#writing = this.#writeAll(chunks);
    this.#writing.catch(() => undefined);
    // Without compression, the chunks are the block itself, whose memory is used again after this.
    if (!this.#compressor.flush) await this.#writing;
  }

  async end(): Promise<void> {
    const chunks = await this.#compressor.end();
    await this.#writing;
    await this.#writeAll(chunks);
  }

  destroy(): void {
    this.#compressor.destroy();
  }

  #writeAll(chunks: Buffer[]): Promise<void> {
    return this.#write(chunks, (chunk) => this.#compressor.release(chunk));
  }
}
