import type { RowEncoder } from '../copy-input.ts';
import type { Kernel, Region } from '../kernel/kernel.ts';
import { STATUS } from '../kernel/layout.ts';
import type { BlockFiles } from './block-files.ts';

export const LARGEST_BLOCK = 1024 * 1024 - 64;
const SMALLEST_BLOCK = 16 * 1024;

interface LinesEncoderOptions {
  kernel: Kernel;
  csv: boolean;
  blocks: BlockFiles;
  maxFileBytes: number | undefined;
  /** Returns a buffer for a block. */
  take(length: number): Buffer;
}

/** Encodes rows as lines and collects them in blocks. */
export class LinesEncoder implements RowEncoder {
  readonly encode: (at: number, end: number) => number;
  readonly #kernel: Kernel;
  readonly #blocks: BlockFiles;
  readonly #blockSize: number;
  readonly #take: (length: number) => Buffer;
  #region: Region;
  /** Where the block must end, unless a single row is larger. */
  #limit: number;
  #to: number;
  #rowsBefore = 0;

  constructor({ kernel, csv, blocks, maxFileBytes, take }: LinesEncoderOptions) {
    this.#kernel = kernel;
    this.#take = take;
    this.#blocks = blocks;
    // A file can end only between blocks, so small files need small blocks.
    const share = Math.max(SMALLEST_BLOCK, (maxFileBytes ?? Number.POSITIVE_INFINITY) / 4);
    this.#blockSize = Math.floor(Math.min(LARGEST_BLOCK, share));
    this.#region = kernel.allocate(this.#blockSize);
    this.#to = this.#region.at;
    this.#limit = this.#to + this.#blockSize;
    const { run } = kernel;
    run.prepareLines(csv);
    const lines = csv ? run.csvLines : run.jsonLines;
    this.encode = (at, end) => {
      const status = lines(at, end, this.#to, this.#limit);
      this.#to = run.written.value;
      return status;
    };
  }

  async resolve(status: number): Promise<void> {
    if (status !== STATUS.full) throw new Error(`The lines' encoder stopped with ${status}.`);
    if (this.#to > this.#region.at) return this.#emit();
    const needed = this.#kernel.run.needed.value >>> 0;
    this.#kernel.free(this.#region);
    this.#region = this.#kernel.allocate(needed);
    this.#to = this.#region.at;
    // The larger block is for this row only.
    this.#limit = this.#to + needed;
  }

  async finish(): Promise<void> {
    if (this.#to > this.#region.at) await this.#emit();
    await this.#blocks.finish();
  }

  destroy(): void {
    this.#blocks.destroy();
  }

  async #emit(): Promise<void> {
    const { run } = this.#kernel;
    const raw = this.#take(this.#to - this.#region.at);
    raw.set(this.#kernel.bytes.subarray(this.#region.at, this.#to));
    const rows = (run.rows.value - this.#rowsBefore) >>> 0;
    this.#rowsBefore = run.rows.value;
    if (this.#region.size > LARGEST_BLOCK) {
      this.#kernel.free(this.#region);
      this.#region = this.#kernel.allocate(this.#blockSize);
    }
    this.#to = this.#region.at;
    this.#limit = this.#to + this.#blockSize;
    await this.#blocks.put({ raw, rows });
  }
}
