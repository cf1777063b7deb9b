import type { Pool } from '../../db/pool.ts';
import { type Governed, listGoverned } from '../rows/paces.ts';
import { listDueAfter, listWaiting, NO_FUNCTION, type Waiting } from '../rows/queue.ts';
import { degradedFunctions } from '../rows/states.ts';
import type { BatchPolicy, DeliveryPolicy } from '../rules/policy.ts';
import { WATCHER } from '../rules/watcher.ts';
import type { Gathering } from './governed.ts';

/** A function with waiting invocations, as this process knows it. */
export interface Line {
  projectId: number;
  functionId: string;
  inFlight: number;
  /** When something is due, in milliseconds. Infinity: nothing that is known. */
  dueAt: number;
  /** What was due before this was taken by somebody. In milliseconds. */
  since: number;
  /** Whether the last claim found much, and not all that is due. */
  isCrowded: boolean;
  /** What waits for others of its batch, until `dueAt`. Undefined: nothing that is known. */
  gathering?: Gathering | undefined;
}

export interface LookOptions {
  /** How often functions with waiting invocations are looked for, in milliseconds. */
  lookEvery: number;
  /** How many of them one look finds. The next one goes on after them. */
  mostFound: number;
}

/** A transaction that enqueues may be open for so long after the time that it gives its invocations. */
const OPEN = 30_000;

/** If nothing is due at a time: what was due before this is taken by somebody. In milliseconds. */
export const takenBefore = (time: number): number => time - OPEN;

/** The functions with waiting invocations, and what decides when they are delivered. */
export class Lines {
  readonly #pool: Pool;
  readonly #options: LookOptions;
  readonly #lines = new Map<string, Line>();
  /** Functions with a policy, as far as this process knows. */
  #governed: ReadonlyMap<string, Pick<Governed, 'delivery' | 'paused'>> = new Map();
  #degraded: ReadonlySet<string> = new Set();
  /** The last function that the last look found, if there may be more after it. */
  #lookedUpTo: Pick<Waiting, 'project_id' | 'function_id'> = NO_FUNCTION;
  /** When the next look is due, in milliseconds. */
  nextLook = 0;

  constructor(pool: Pool, options: LookOptions) {
    this.#pool = pool;
    this.#options = options;
  }

  get all(): Iterable<Line> {
    return this.#lines.values();
  }

  /** Something of a function is due at this time at the latest. */
  expect({ projectId, functionId }: { projectId: number; functionId: string }, at: number): Line {
    let line = this.#lines.get(functionId);
    if (!line) {
      line = { projectId, functionId, inFlight: 0, dueAt: at, since: 0, isCrowded: false };
      this.#lines.set(functionId, line);
    }
    line.dueAt = Math.min(line.dueAt, at);
    return line;
  }

  isGoverned(functionId: string): boolean {
    return this.#governed.has(functionId);
  }

  isPaused(functionId: string): boolean {
    return this.#governed.get(functionId)?.paused === true;
  }

  policyOf(functionId: string): DeliveryPolicy {
    return this.#governed.get(functionId)?.delivery ?? {};
  }

  isDegraded(functionId: string): boolean {
    return this.#degraded.has(functionId);
  }

  /** A function has a policy. The next look knows better. */
  govern(functionId: string, { delivery, paused }: Pick<Governed, 'delivery' | 'paused'>): void {
    if (!this.isGoverned(functionId))
      this.#governed = new Map([...this.#governed, [functionId, { delivery, paused }]]);
  }

  /** Looks which functions have waiting invocations. Others are forgotten, if `mayForget` allows that by then. */
  async look(mayForget: () => boolean): Promise<void> {
    const began = Date.now();
    const { mostFound } = this.#options;
    const after = this.#lookedUpTo;
    const waiting = await listWaiting(this.#pool, mostFound, after);
    const last = waiting.length < mostFound ? undefined : waiting.at(-1);
    this.#lookedUpTo = last ?? NO_FUNCTION;
    this.#governed = new Map((await listGoverned(this.#pool)).map((one) => [one.function_id, one]));
    this.#degraded = await degradedFunctions(this.#pool, WATCHER);
    const beyond = await this.#beyondGathering(waiting);
    const took = Date.now() - began;
    const known = new Set<string>();
    for (const { project_id: projectId, function_id: functionId, due_at: first } of waiting) {
      known.add(functionId);
      const due = beyond.has(functionId) ? beyond.get(functionId) : first;
      if (due === undefined) continue;
      const line = this.expect({ projectId, functionId }, Date.parse(due));
      line.since = Math.min(line.since, Date.parse(due));
    }
    if (mayForget()) {
      for (const [key, line] of this.#lines) {
        if (known.has(key) || line.inFlight > 0 || line.dueAt <= began) continue;
        if (!isAfter(line, after) || (last && isAfter(line, last))) continue;
        this.#lines.delete(key);
      }
    }
    this.nextLook = Date.now() + Math.max(this.#options.lookEvery, took * 20);
  }

  /**
   * Of functions with invocations that wait for others of their batch, and about which it is known when there is something to
   * do: when the first of their other invocations is due. Undefined: there is none.
   */
  async #beyondGathering(waiting: readonly Waiting[]): Promise<Map<string, string | undefined>> {
    const gathering = waiting.flatMap(({ project_id: projectId, function_id: functionId }) => {
      const gathering = this.#lines.get(functionId)?.gathering;
      if (!gathering || !isSame(gathering.policy, this.policyOf(functionId).batch)) return [];
      return [{ projectId, functionId, since: gathering.since }];
    });
    if (gathering.length === 0) return new Map();
    const later = await listDueAfter(this.#pool, gathering);
    const due = new Map(later.map((one) => [one.function_id, one.due_at]));
    return new Map(gathering.map(({ functionId }) => [functionId, due.get(functionId)]));
  }
}

const isSame = (one: BatchPolicy, other: BatchPolicy | undefined): boolean =>
  one.max_batch === other?.max_batch && one.max_wait_seconds === other.max_wait_seconds;

/** Whether a function comes after another one in the order of the queue. */
const isAfter = (
  { projectId, functionId }: Line,
  { project_id, function_id }: Pick<Waiting, 'project_id' | 'function_id'>,
): boolean => projectId > project_id || (projectId === project_id && functionId > function_id);
