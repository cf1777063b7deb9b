import { Worker } from 'node:worker_threads';
import { SourceError } from '../errors.ts';
import type { ParseRequest, ParseResponse } from './protocol.ts';
import type { SourceKind } from './scan.ts';

export interface PoolOptions {
  workers: number;
  maxWaiting: number;
}

/** The time that all parts of one text may take together. */
export interface Budget {
  limitMs: number;
  usedMs: number;
}

interface Job extends ParseRequest {
  budget: Budget;
  started: number;
  signal: AbortSignal | undefined;
  resolve(jsons: string[]): void;
  reject(error: unknown): void;
}

interface Slot {
  worker: Worker;
  job: Job | null;
  timer: NodeJS.Timeout | null;
}

/** After this many texts a thread is replaced, because the parser's caches never shrink. */
const TEXTS_PER_THREAD = 5_000;

/**
 * A pool of parser threads. Each thread parses one request at a time. When a request takes too long, its thread is
 * terminated, because a thread that runs WebAssembly cannot be interrupted.
 */
export class ParserPool {
  readonly #options: PoolOptions;
  readonly #slots: Slot[] = [];
  readonly #done = new WeakMap<Worker, number>();
  #waiting: Job[] = [];
  #nextId = 1;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** Parses texts. When `signal` is aborted, the request leaves the queue, or its thread is ended. */
  parse(kind: SourceKind, sources: string[], budget: Budget, signal?: AbortSignal): Promise<string[]> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    if (this.#closed) return Promise.reject(new SourceError('busy', 'The parser is closed'));
    if (this.#waiting.length >= this.#options.maxWaiting) {
      return Promise.reject(new SourceError('busy', 'Too many sources are waiting for the parser'));
    }
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      const stop = () => this.#stop(job);
      const settled = () => signal?.removeEventListener('abort', stop);
      const job: Job = {
        ...{ id, kind, sources, budget, signal, started: 0 },
        resolve: (jsons) => {
          settled();
          resolve(jsons);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      signal?.addEventListener('abort', stop);
      this.#waiting.push(job);
      this.#next();
    });
  }

  #stop(job: Job): void {
    const slot = this.#slots.find((one) => one.job === job);
    if (slot) this.#release(slot, true);
    else this.#waiting = this.#waiting.filter((one) => one !== job);
    job.reject(job.signal?.reason);
    this.#next();
  }

  async close(): Promise<void> {
    this.#closed = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const job of waiting) job.reject(new SourceError('busy', 'The parser is closed'));
    const slots = this.#slots.splice(0);
    for (const slot of slots) {
      if (slot.timer) clearTimeout(slot.timer);
      slot.job?.reject(new SourceError('busy', 'The parser is closed'));
      slot.job = null;
    }
    await Promise.all(slots.map((slot) => slot.worker.terminate()));
  }

  #next(): void {
    if (this.#waiting.length === 0) return;
    let slot = this.#slots.find((one) => one.job === null);
    if (!slot) {
      if (this.#slots.length >= this.#options.workers) return;
      slot = this.#start();
    }
    const job = this.#waiting.shift() as Job;
    const taken = slot;
    slot.job = job;
    slot.worker.ref();
    job.started = performance.now();
    const { limitMs, usedMs } = job.budget;
    slot.timer = setTimeout(() => this.#expire(taken), Math.max(0, limitMs - usedMs));
    const request: ParseRequest = { id: job.id, kind: job.kind, sources: job.sources };
    slot.worker.postMessage(request);
  }

  #start(): Slot {
    const worker = new Worker(new URL('./worker.ts', import.meta.url), {
      stdout: false,
      stderr: false,
      // The parser needs no flags or environment variables of the process.
      env: {},
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    worker.unref();
    const slot: Slot = { worker, job: null, timer: null };
    worker.on('message', (response: ParseResponse) => this.#answer(slot, response));
    worker.on('error', (error) => this.#fail(slot, error));
    worker.on('exit', () => this.#fail(slot, new Error('the thread ended')));
    this.#slots.push(slot);
    return slot;
  }

  #answer(slot: Slot, response: ParseResponse): void {
    const { job } = slot;
    if (job?.id !== response.id) return;
    const count = (this.#done.get(slot.worker) ?? 0) + 1;
    this.#done.set(slot.worker, count);
    this.#release(slot, response.trap !== undefined || count >= TEXTS_PER_THREAD);
    if (response.jsons !== undefined) job.resolve(response.jsons);
    else job.reject(new SourceError('too_deep', 'The source is too complex for the parser'));
    this.#next();
  }

  #expire(slot: Slot): void {
    const { job } = slot;
    this.#release(slot, true);
    const seconds = (job?.budget.limitMs ?? 0) / 1000;
    job?.reject(new SourceError('timeout', `The source could not be parsed within ${seconds} seconds`));
    this.#next();
  }

  /** Handles a thread that ended by itself, usually because it ran out of memory. */
  #fail(slot: Slot, error: unknown): void {
    if (!this.#slots.includes(slot)) return;
    const { job } = slot;
    this.#release(slot, true);
    const reason = error instanceof Error ? error.message : String(error);
    job?.reject(new SourceError('too_deep', `The source is too complex for the parser: ${reason}`));
    this.#next();
  }

  #release(slot: Slot, discard: boolean): void {
    if (slot.timer) clearTimeout(slot.timer);
    if (slot.job) slot.job.budget.usedMs += performance.now() - slot.job.started;
    slot.timer = null;
    slot.job = null;
    if (discard) {
      this.#slots.splice(this.#slots.indexOf(slot), 1);
      // Nothing waits for the termination, and messages from the thread are ignored.
      slot.worker.terminate().catch(() => {});
    } else slot.worker.unref();
  }
}
