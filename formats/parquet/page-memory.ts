import { BufferPool } from '../buffer-pool.ts';

const SLAB = 1024 * 1024 - 64;
/** As many as two row groups fill: one is written while the next one is made. */
const MOST_FREE = 32;

/** Memory for what waits until its row group is whole: slabs, which the next row group but one uses again. */
export class PageMemory {
  readonly #pool = new BufferPool(SLAB, MOST_FREE);

  /** For one row group. */
  begin(): GroupMemory {
    return new GroupMemory(this.#pool);
  }
}

export class GroupMemory {
  readonly #pool: BufferPool;
  #slabs: Buffer[] = [];
  #free: Buffer = Buffer.alloc(0);

  constructor(pool: BufferPool) {
    this.#pool = pool;
  }

  /** What all of the pieces say, until `release`. */
  keep(pieces: readonly Uint8Array[]): Buffer {
    const size = pieces.reduce((sum, { length }) => sum + length, 0);
    if (size > this.#free.length) {
      // What is larger than a slab has memory of its own.
      this.#free = this.#pool.take(Math.max(size, SLAB));
      this.#slabs.push(this.#free);
    }
    const kept = this.#free.subarray(0, size);
    this.#free = this.#free.subarray(size);
    let at = 0;
    for (const piece of pieces) {
      kept.set(piece, at);
      at += piece.length;
    }
    return kept;
  }

  /** Nobody reads any of it any more. */
  release(): void {
    for (const slab of this.#slabs) this.#pool.give(slab);
    this.#slabs = [];
    this.#free = Buffer.alloc(0);
  }
}
