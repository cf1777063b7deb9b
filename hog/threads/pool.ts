import { getCompileCacheDir } from 'node:module';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { ProcessorTime } from './processor-time.ts';

export interface ThreadPoolOptions {
  /** The module that a thread runs. It calls `serveThread`. */
  entry: URL;
  /** The most threads. */
  threads: number;
  /** The most jobs that wait. */
  maxWaiting: number;
  /** The most jobs of one owner that wait. By default as many as of all owners. */
  maxWaitingOfOne?: number;
}

/**
 * The time that all jobs for one purpose may take together. Waiting for a thread does not count, and neither does waiting for
 * a processor where the system tells how long a thread has computed. A job ends after `MOST_WAITING` times its rest all the same.
 */
export interface Budget {
  limitMs: number;
  usedMs: number;
}

/** The fields of an error that crosses the border of a thread. */
export interface Failure {
  name: string;
  message: string;
  [field: string]: unknown;
}

export interface ThreadRequest<Job> {
  id: number;
  job: Job;
}

export interface ThreadAnswer<Answer> {
  id: number;
  answer?: Answer;
  /** Why there is no answer. */
  failure?: Failure;
  /** Why the answer that there is cannot be sent. */
  unsent?: string;
  /** True if the thread should be replaced, because it can no longer be trusted or has grown. */
  worn?: boolean;
}

/**
 * Why a job has no answer:
 *
 * - `busy`: too many jobs are waiting, or the pool is closed
 * - `timeout`: the job took longer than its budget
 * - `lost`: its thread ended, usually because it ran out of memory
 * - `failed`: the thread says so; `failure` has the reason
 * - `unsent`: the job, or its answer, is nothing that can be sent to another thread: it nests too deep, for example
 */
export type ThreadErrorCode = 'busy' | 'timeout' | 'lost' | 'failed' | 'unsent';

export class ThreadError extends Error {
  override readonly name = 'ThreadError';
  readonly code: ThreadErrorCode;
  readonly failure: Failure | null;

  constructor(code: ThreadErrorCode, message: string, failure: Failure | null = null) {
    super(message);
    this.code = code;
    this.failure = failure;
  }
}

interface Waiting<Job, Answer> extends ThreadRequest<Job> {
  owner: string;
  transfer: readonly ArrayBuffer[];
  budget: Budget;
  /** When the thread began with it, and how long the thread had computed before. */
  started: number;
  computed: number | null;
  resolve(answer: Answer): void;
  reject(error: unknown): void;
}

/** What a thread says when its modules are loaded. Only then the time of its first job begins. */
export interface Ready {
  /** What the system calls the thread. */
  thread: string | null;
}

/** How many times as long as a job may compute it may last, so that nobody waits for ever for a thread that waits. */
const MOST_WAITING = 6;
/** Milliseconds after which a thread that still has some of its time is looked at again, at least. */
const SHORTEST_LOOK = 20;
/** Milliseconds that a thread may take to load. A busy machine may need many seconds. */
const LONGEST_START = 120_000;

interface Slot<Job, Answer> {
  worker: Worker;
  isReady: boolean;
  time: ProcessorTime | null;
  job: Waiting<Job, Answer> | null;
  timer: NodeJS.Timeout | null;
}

const NOBODY = '';

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Where this process keeps compiled code, if anywhere, as a variable for its threads. Node makes one directory in it for each version. */
function compiledCode(): Record<string, string> {
  const ofVersion = getCompileCacheDir();
  return ofVersion === undefined ? {} : { NODE_COMPILE_CACHE: path.dirname(ofVersion) };
}

/** Milliseconds that a thread has computed for its job, or that have passed if nobody knows more. */
function taken<Job, Answer>(
  { time }: Slot<Job, Answer>,
  { started, computed }: Waiting<Job, Answer>,
): number {
  const now = time?.milliseconds() ?? null;
  return now === null || computed === null ? performance.now() - started : now - computed;
}

/**
 * A pool of threads for work whose cost users decide. Each thread does one job at a time. When a job takes too long,
 * its thread is terminated, because a thread that computes cannot be interrupted.
 *
 * Jobs can have an owner, such as a project. Of several threads, one owner never has all: another owner's job always
 * finds one that will soon be free. Among those that wait, the owner with the fewest jobs in progress comes first, and of
 * several the one whose last job began longest ago.
 */
export class ThreadPool<Job, Answer> {
  readonly #options: ThreadPoolOptions;
  readonly #slots: Slot<Job, Answer>[] = [];
  #waiting: Waiting<Job, Answer>[] = [];
  #nextId = 1;
  /** When the last job of each owner began, as a number that grows. Owners without jobs are forgotten. */
  readonly #turns = new Map<string, number>();
  #turn = 0;
  #closed = false;

  constructor(options: ThreadPoolOptions) {
    this.#options = options;
  }

  /**
   * Does a job. When `signal` is aborted, the job leaves the queue, or its thread is ended. The memory in `transfer` moves to
   * the thread instead of being copied.
   */
  run(
    job: Job,
    budget: Budget,
    owner: string = NOBODY,
    signal?: AbortSignal,
    transfer: readonly ArrayBuffer[] = [],
  ): Promise<Answer> {
    if (signal?.aborted) return Promise.reject(signal.reason);
    const { maxWaiting, maxWaitingOfOne = maxWaiting } = this.#options;
    const closed = this.#closed;
    const full =
      this.#waiting.length >= maxWaiting ||
      this.#waiting.filter((one) => one.owner === owner).length >= maxWaitingOfOne;
    if (closed || full) {
      const reason = closed ? 'The threads are closed' : 'Too many jobs are waiting for a thread';
      return Promise.reject(new ThreadError('busy', reason));
    }
    return new Promise((resolve, reject) => {
      const stop = () => this.#stop(waiting, signal?.reason);
      const settled = () => signal?.removeEventListener('abort', stop);
      const waiting: Waiting<Job, Answer> = {
        ...{ id: this.#nextId++, job, owner, budget, transfer, started: 0, computed: null },
        resolve: (answer) => {
          settled();
          resolve(answer);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      signal?.addEventListener('abort', stop);
      this.#waiting.push(waiting);
      this.#next();
    });
  }

  /** Gives up a job that nobody waits for. */
  #stop(job: Waiting<Job, Answer>, reason: unknown): void {
    const slot = this.#slots.find((one) => one.job === job);
    if (slot) this.#release(slot, true);
    else this.#waiting = this.#waiting.filter((one) => one !== job);
    job.reject(reason);
    this.#next();
  }

  /** Ends the threads that have nothing to do, and so gives back their memory. The next job starts a new one. */
  rest(): void {
    for (const slot of this.#slots.filter(({ job }) => job === null)) this.#release(slot, true);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    const slots = this.#slots.splice(0);
    const closed = () => new ThreadError('busy', 'The threads are closed');
    for (const job of waiting) job.reject(closed());
    for (const slot of slots) {
      if (slot.timer) clearTimeout(slot.timer);
      slot.job?.reject(closed());
      slot.job = null;
      slot.time?.close();
    }
    await Promise.all(slots.map((slot) => slot.worker.terminate()));
  }

  /** Takes the next job out of those that wait. Returns null if none may start now. */
  #take(): Waiting<Job, Answer> | null {
    const running = (owner: string) => this.#slots.filter((one) => one.job?.owner === owner).length;
    const most = Math.max(1, this.#options.threads - 1);
    let best = -1;
    let [fewest, oldest] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
    for (const [index, { owner }] of this.#waiting.entries()) {
      const count = running(owner);
      if (owner !== NOBODY && count >= most) continue;
      const turn = this.#turns.get(owner) ?? 0;
      if (count < fewest || (count === fewest && turn < oldest))
        [best, fewest, oldest] = [index, count, turn];
    }
    if (best === -1) return null;
    const [job] = this.#waiting.splice(best, 1) as [Waiting<Job, Answer>];
    this.#turn += 1;
    this.#turns.set(job.owner, this.#turn);
    return job;
  }

  #next(): void {
    if (this.#waiting.length === 0) {
      this.#turns.clear();
      return;
    }
    const idle = this.#slots.find((one) => one.job === null);
    if (!idle && this.#slots.length >= this.#options.threads) return;
    const job = this.#take();
    if (!job) return;
    const slot = idle ?? this.#start();
    slot.job = job;
    slot.worker.ref();
    if (slot.isReady) this.#time(slot, job);
    else slot.timer = setTimeout(() => this.#expire(slot), LONGEST_START);
    const request: ThreadRequest<Job> = { id: job.id, job: job.job };
    try {
      slot.worker.postMessage(request, job.transfer);
    } catch (error) {
      this.#release(slot, false);
      job.reject(new ThreadError('unsent', messageOf(error)));
      this.#next();
    }
  }

  /** The time of the job begins. */
  #time(slot: Slot<Job, Answer>, job: Waiting<Job, Answer>): void {
    job.started = performance.now();
    job.computed = slot.time?.milliseconds() ?? null;
    const rest = Math.max(0, job.budget.limitMs - job.budget.usedMs);
    slot.timer = setTimeout(() => this.#look(slot, job, rest), rest);
  }

  /** Ends the job if it has computed for as long as it may, or if it has lasted far longer. */
  #look(slot: Slot<Job, Answer>, job: Waiting<Job, Answer>, rest: number): void {
    const left = rest - taken(slot, job);
    const lasts = MOST_WAITING * rest - (performance.now() - job.started);
    // A timer can be early by a part of a millisecond.
    if (left < 1 || lasts < 1) this.#expire(slot);
    else {
      const wait = Math.min(lasts, Math.max(left, SHORTEST_LOOK));
      slot.timer = setTimeout(() => this.#look(slot, job, rest), wait);
    }
  }

  #ready(slot: Slot<Job, Answer>, { thread }: Ready): void {
    slot.isReady = true;
    slot.time = ProcessorTime.of(thread);
    if (!slot.job) return;
    if (slot.timer) clearTimeout(slot.timer);
    this.#time(slot, slot.job);
  }

  #start(): Slot<Job, Answer> {
    const worker = new Worker(this.#options.entry, {
      stdout: false,
      stderr: false,
      // The threads need no flags or settings of the process. They take what is compiled already.
      env: compiledCode(),
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: 256 },
    });
    worker.unref();
    const slot: Slot<Job, Answer> = { worker, isReady: false, time: null, job: null, timer: null };
    worker.on('message', (said: ThreadAnswer<Answer> | Ready) => {
      if ('thread' in said) this.#ready(slot, said);
      else this.#answer(slot, said);
    });
    worker.on('error', (error) => this.#lose(slot, error));
    worker.on('exit', () => this.#lose(slot, new Error('the thread ended')));
    this.#slots.push(slot);
    return slot;
  }

  #answer(slot: Slot<Job, Answer>, { id, answer, failure, unsent, worn }: ThreadAnswer<Answer>): void {
    const { job } = slot;
    if (job?.id !== id) return;
    this.#release(slot, worn === true);
    if (unsent !== undefined) job.reject(new ThreadError('unsent', unsent));
    else if (failure) job.reject(new ThreadError('failed', failure.message, failure));
    else job.resolve(answer as Answer);
    this.#next();
  }

  #expire(slot: Slot<Job, Answer>): void {
    const { job } = slot;
    this.#release(slot, true);
    // Nothing of the time is left, also if it passed with waiting.
    if (job) job.budget.usedMs = Math.max(job.budget.usedMs, job.budget.limitMs);
    const seconds = (job?.budget.limitMs ?? 0) / 1000;
    job?.reject(new ThreadError('timeout', `The job took longer than ${seconds} seconds`));
    this.#next();
  }

  /** Handles a thread that ended by itself. */
  #lose(slot: Slot<Job, Answer>, error: unknown): void {
    if (!this.#slots.includes(slot)) return;
    const { job } = slot;
    this.#release(slot, true);
    job?.reject(new ThreadError('lost', messageOf(error)));
    this.#next();
  }

  #release(slot: Slot<Job, Answer>, discard: boolean): void {
    if (slot.timer) clearTimeout(slot.timer);
    if (slot.job && slot.isReady) slot.job.budget.usedMs += taken(slot, slot.job);
    slot.timer = null;
    slot.job = null;
    if (discard) {
      this.#slots.splice(this.#slots.indexOf(slot), 1);
      slot.time?.close();
      slot.time = null;
      // Nothing waits for the termination, and messages from the thread are ignored.
      slot.worker.terminate().catch(() => {});
    } else slot.worker.unref();
  }
}
