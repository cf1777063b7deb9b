import { HogFailure } from './errors.ts';

export interface Limits {
  /** Instructions, plus a share for long strings and lists. */
  maxSteps: number;
  /** Bytes by the machine's own count of what the stack holds. */
  maxMemory: number;
  /** Milliseconds of running, summed over pauses; counts only if a clock is given. */
  maxMilliseconds: number;
  maxCallDepth: number;
  maxArguments: number;
  maxAsyncSteps: number;
}

export const DEFAULT_LIMITS: Limits = {
  maxSteps: 50_000_000,
  maxMemory: 64 * 1024 * 1024,
  maxMilliseconds: 5_000,
  maxCallDepth: 1_000,
  maxArguments: 300,
  maxAsyncSteps: 100,
};

/** Steps between two looks at the clock. */
const STRIDE = 512;
/** What a run may allocate in strings over its whole life, in multiples of the memory limit. */
const CHURN = 16;

/** Counts what one run uses and ends it at its limits. */
export class Meter {
  readonly limits: Limits;
  steps: number;
  allocated = 0;
  readonly #clock: (() => number) | null;
  readonly #before: number;
  #started: number;
  #next: number;

  constructor(limits: Limits, clock: (() => number) | null, used = { steps: 0, milliseconds: 0 }) {
    this.limits = limits;
    this.#clock = clock;
    this.#before = used.milliseconds;
    this.#started = clock ? clock() : 0;
    this.steps = used.steps;
    this.#next = Math.min(this.steps + STRIDE, limits.maxSteps);
  }

  /** Counts from nothing again: the next run of the same code, without making a meter for it. */
  restart(): void {
    this.steps = 0;
    this.allocated = 0;
    this.#started = this.#clock ? this.#clock() : 0;
    this.#next = Math.min(STRIDE, this.limits.maxSteps);
  }

  get milliseconds(): number {
    return this.#before + (this.#clock ? this.#clock() - this.#started : 0);
  }

  step(count = 1): void {
    this.steps += count;
    if (this.steps >= this.#next) this.#check();
  }

  /** The share of work that grows with a value: a long string is not one step. */
  work(size: number): void {
    this.step(size >> 6);
  }

  allocate(bytes: number): void {
    if (bytes > this.limits.maxMemory) this.outOfMemory(bytes);
    this.allocated += bytes;
    if (this.allocated > this.limits.maxMemory * CHURN) this.outOfMemory(this.allocated);
    this.work(bytes);
  }

  outOfMemory(bytes: number): never {
    throw new HogFailure(
      'memory',
      `Memory limit of ${this.limits.maxMemory} bytes exceeded. Tried to allocate ${bytes} bytes.`,
    );
  }

  #check(): void {
    const { maxSteps, maxMilliseconds } = this.limits;
    if (this.steps > maxSteps) throw new HogFailure('steps', `Exceeded the maximum of ${maxSteps} steps.`);
    if (this.milliseconds > maxMilliseconds) {
      throw new HogFailure(
        'time',
        `Execution timed out after ${maxMilliseconds / 1000} seconds. Performed ${this.steps} ops.`,
      );
    }
    this.#next = Math.min(this.steps + STRIDE, maxSteps + 1);
  }
}
