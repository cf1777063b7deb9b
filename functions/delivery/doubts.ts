import type { Pool } from '../../db/pool.ts';
import { giveBack } from '../rows/queue.ts';

interface Doubt {
  lease: string;
  functions: readonly { projectId: number; functionId: string }[];
  /** Until then Postgres may still make the claim. In milliseconds. */
  until: number;
}

/** Longer than Postgres works on a claim whose connection is lost. In milliseconds. */
const LONGEST_CLAIM = 150_000;

/** Claims whose answer was lost: they may have been made, and nobody else knows what they took. */
export class Doubts {
  readonly #pool: Pool;
  #all: Doubt[] = [];

  constructor(pool: Pool) {
    this.#pool = pool;
  }

  add(lease: string, functions: Doubt['functions']): void {
    this.#all.push({ lease, functions, until: Date.now() + LONGEST_CLAIM });
  }

  /** Gives back what these claims have taken so far. */
  async settle(): Promise<void> {
    const now = Date.now();
    for (const one of this.#all) {
      await giveBack(this.#pool, one.functions, one.lease);
      if (one.until < now) this.#all = this.#all.filter((other) => other !== one);
    }
  }
}
