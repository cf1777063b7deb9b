import { HogFailure } from './errors.ts';

export interface Limits {
  /** Instructions, plus extra steps for long strings and lists. */
  maxSteps: number;
  /** The bytes of the values that the VM holds, by its own estimate. */
  maxMemory: number;
  /** The running time in milliseconds, summed over pauses. It is only measured if a clock is given. */
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

/** The steps between two checks of the clock. */
const STRIDE = 512;
/** How much a run may allocate in strings over its whole life, as a multiple of the memory limit. */
const CHURN = 16;

/** Counts the resources that one run uses, and ends the run when it exceeds a limit. */
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

  /** Resets the counters, so that the next run of the same code needs no new meter. */
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

  /** Charges steps in proportion to the size of a value, because work on a long string is more than one step. */
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
