import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { claim, type NewInvocation, type QueueRow, type Want } from '../rows/queue.ts';
import { Aside } from './aside.ts';
import { type AttemptDependencies, Attempts, type Claimed } from './attempts.ts';
import type { Outcome } from './delivery.ts';
import { Doubts } from './doubts.ts';
import { GovernedClaims } from './governed.ts';
import { Leases } from './leases.ts';
import { type Line, Lines, type LookOptions, takenBefore } from './lines.ts';
import { AFTER_ERROR, ofOther } from './outcomes.ts';
import { Pace } from './pace.ts';
import { Results } from './results.ts';
import { Load, type Share, sharesOf } from './shares.ts';

export interface DelivererOptions extends LookOptions {
  /** How many invocations are in progress at once. */
  places: number;
  /** How long an invocation belongs to a process that says nothing more of it, in seconds. */
  leaseSeconds: number;
}

export const DELIVERER_DEFAULTS: DelivererOptions = {
  ...{ places: 256, leaseSeconds: 30, lookEvery: 1_000, mostFound: 20_000 },
};

/** Claims follow each other at this distance at least, in milliseconds, so that each takes many. */
const CLAIM_EVERY = 10;

/** When there is no room for what is due, it is looked again after so many milliseconds, unless something ends before. */
const CLAIM_AGAIN = 50;

/** So many rows are claimed and begun in no time. */
const FEW = 8;
/** So many may be taken as they are queued. */
const MOST_NEW = 4 * FEW;

const wantOf = ({ line, count }: Share): Want => ({
  ...{ projectId: line.projectId, functionId: line.functionId, count },
  since: new Date(line.since).toISOString(),
});

const functionsOf = (shares: readonly Share[]) =>
  shares.map(({ line: { projectId, functionId } }) => ({ projectId, functionId }));

/** Takes invocations that are due, and has them attempted. No function and no project gets all places. */
export class Deliverer {
  readonly #deps: AttemptDependencies;
  readonly #options: DelivererOptions;
  readonly #lines: Lines;
  readonly #load = new Load();
  readonly #leases: Leases;
  readonly #attempts: Attempts;
  readonly #results: Results;
  readonly #claims: GovernedClaims;
  readonly #doubts: Doubts;
  /** Claims of invocations with a policy, which take longer. */
  readonly #governing = new Aside(this.#load.reserved);
  /** Claims for functions that have much to do. Many rows take longer to claim and to begin with. */
  readonly #refilling = new Aside(this.#load.reserved, CLAIM_EVERY);
  readonly #pace = new Pace();
  #wake: (() => void) | undefined;
  #isAwake = false;
  #isStirring = false;
  #isClosing = false;
  /** How many claims of what is about to be queued are under way. */
  #taking = 0;
  #running: Promise<void> | undefined;

  constructor(deps: AttemptDependencies, options: Partial<DelivererOptions> = {}) {
    this.#deps = deps;
    this.#options = { ...DELIVERER_DEFAULTS, ...options };
    const { leaseSeconds } = this.#options;
    this.#lines = new Lines(deps.pool, this.#options);
    this.#claims = new GovernedClaims(deps.pool);
    this.#doubts = new Doubts(deps.pool);
    this.#leases = new Leases(deps.pool, deps.logger, leaseSeconds);
    this.#results = new Results(deps.pool, deps.logger, this.#load, this.#leases);
    this.#attempts = new Attempts(deps, {
      ...{ lines: this.#lines, load: this.#load, leases: this.#leases },
      finish: (row, lease, outcome) => this.#finish(row, lease, outcome),
      finishOne: (row, lease, outcome) => void this.#results.add(row, lease, outcome),
    });
  }

  start(): void {
    this.#leases.start();
    this.#running = this.#run();
  }

  /** Takes nothing more, and waits until everything that runs has ended. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#stir();
    await this.#running;
    await this.#governing.idle();
    await this.#refilling.idle();
    this.#results.hurry();
    while (this.inFlight + this.#load.unwritten.all + this.#taking > 0)
      await new Promise((resolve) => setTimeout(resolve, 10));
    await this.#results.idle();
    await this.#leases.close();
    await this.#doubts.settle().catch((error: unknown) => {
      this.#deps.logger.warn({ err: error }, 'invocations of functions could not be given back');
    });
  }

  /** Invocations of these functions are due now. */
  due(functions: Iterable<{ projectId: number; functionId: string }>): void {
    const now = Date.now();
    for (const one of functions) this.#lines.expect(one, now);
    this.#stir();
  }

  /**
   * Takes invocations that are about to be queued, as far as there are places and nothing older of their functions is due:
   * what is claimed as it is queued needs no claim afterwards. Call `begin` or `drop` of it.
   */
  take(invocations: readonly NewInvocation[]) {
    if (this.#isClosing || invocations.length > MOST_NEW) return undefined;
    const wanted = Map.groupBy(invocations, (one) => one.functionId);
    const now = Date.now();
    const free = [...wanted.values()].flatMap(([first]) => {
      const { projectId, functionId } = first as NewInvocation;
      if (this.#lines.isGoverned(functionId)) return [];
      const line = this.#lines.expect({ projectId, functionId }, Number.POSITIVE_INFINITY);
      return line.isCrowded || line.dueAt <= now ? [] : [{ ...line, dueAt: now }];
    });
    const shares = sharesOf(this.#lines, this.#load, {
      ...{ all: free, places: this.#options.places, mayBeClaimed: () => true },
    }).map((one) => ({ ...one, some: (wanted.get(one.line.functionId) ?? []).slice(0, one.count) }));
    if (shares.length === 0) return undefined;
    const [lease, began] = [randomUUID(), performance.now()];
    const reserve = (sign: 1 | -1) => {
      this.#taking += sign;
      for (const { line, some } of shares) this.#load.reserved.add(line.projectId, sign * some.length);
    };
    reserve(1);
    return {
      ...{ ids: new Set(shares.flatMap(({ some }) => some.map(({ id }) => id))), lease },
      seconds: this.#options.leaseSeconds,
      begin: (rows: readonly QueueRow[]) => {
        this.#begin({ rows, lease }, began);
        if (rows.length > 0) this.#pace.little();
        reserve(-1);
      },
      drop: () => {
        reserve(-1);
        this.#doubts.add(lease, functionsOf(shares));
      },
    };
  }

  get inFlight(): number {
    return this.#load.inProgress.all;
  }

  #stir(): void {
    this.#isAwake = true;
    this.#wake?.();
  }

  /** A place is free. It is taken together with others that become free at about the same time. */
  #stirSoon(): void {
    if (this.#isStirring) return;
    this.#isStirring = true;
    setTimeout(() => {
      this.#isStirring = false;
      this.#stir();
    }, CLAIM_EVERY);
  }

  async #run(): Promise<void> {
    while (!this.#isClosing) {
      this.#isAwake = false;
      try {
        // A claim that is under way counts in lines that it knows.
        if (Date.now() >= this.#lines.nextLook) {
          await this.#doubts.settle();
          await this.#lines.look(() => !this.#governing.isBusy && !this.#refilling.isBusy);
        }
        while (!this.#isClosing && (await this.#take())) await pause(CLAIM_EVERY);
      } catch (error) {
        if (this.#isClosing) return;
        this.#deps.logger.warn({ err: error }, 'invocations of functions could not be taken');
        await this.#rest(AFTER_ERROR / 5);
      }
      if (!this.#isAwake && !this.#isClosing) {
        const next = this.#untilNext();
        await this.#rest(next > 0 ? Math.max(CLAIM_EVERY, next) : CLAIM_AGAIN);
      }
    }
  }

  /** How long nothing is expected, in milliseconds. */
  #untilNext(): number {
    const now = Date.now();
    let next = this.#lines.nextLook;
    if (this.inFlight < this.#options.places) {
      for (const line of this.#lines.all) {
        if (line.dueAt >= next) continue;
        if (this.#mayBeClaimed(line)) next = line.dueAt;
        else if (line.isCrowded && !this.#refilling.isBusy) next = Math.min(next, now + CLAIM_AGAIN);
      }
    }
    return next - now;
  }

  #rest(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#wake = undefined;
        resolve();
      }, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        this.#wake = undefined;
        resolve();
      };
    });
  }

  /** What is paused need not be looked at, and of the claims that others do not wait for one of a kind is enough at a time. */
  #mayBeClaimed({ functionId, isCrowded }: Line): boolean {
    if (!this.#lines.isGoverned(functionId))
      return !(isCrowded && (this.#refilling.isBusy || this.#pace.mustRest));
    return !this.#lines.isPaused(functionId) && !this.#governing.isBusy;
  }

  /** Takes what is due, as far as there are places. Returns whether there may be more. */
  async #take(): Promise<boolean> {
    const shares = sharesOf(this.#lines, this.#load, {
      places: this.#options.places,
      mayBeClaimed: (line) => this.#mayBeClaimed(line),
    });
    if (shares.length === 0) return false;
    const isGoverned = ({ line }: Share) => this.#lines.isGoverned(line.functionId);
    const governed = shares.filter(isGoverned);
    if (governed.length > 0) {
      this.#governing.begin(
        governed,
        (some) => this.#takeGoverned(some),
        () => this.#stir(),
      );
    }
    const free = shares.filter((one) => !isGoverned(one));
    const crowded = free.filter(({ line }) => line.isCrowded);
    if (crowded.length > 0) {
      this.#refilling.begin(
        crowded,
        (some) => this.#refill(some),
        () => this.#stir(),
      );
    }
    if (crowded.length < free.length) await this.#takeFree(free.filter(({ line }) => !line.isCrowded));
    return true;
  }

  async #takeFree(shares: readonly Share[]): Promise<void> {
    const lease = randomUUID();
    const { leaseSeconds: seconds } = this.#options;
    const began = Date.now();
    const asked = performance.now();
    // What becomes due meanwhile may not be seen by the claim, and is not forgotten.
    for (const { line } of shares) line.dueAt = Number.POSITIVE_INFINITY;
    const expectAll = (some: readonly Share[]) => {
      for (const { line } of some) line.dueAt = Math.min(line.dueAt, began);
    };
    let rows: QueueRow[];
    try {
      rows = await claim(this.#deps.pool, shares.map(wantOf), { lease, seconds });
    } catch (error) {
      this.#doubts.add(lease, functionsOf(shares));
      expectAll(shares);
      throw error;
    }
    const taken = Map.groupBy(rows, (row) => row.function_id);
    const takenOf = ({ line }: Share) => taken.get(line.functionId) ?? [];
    const filled = shares.filter((share) => takenOf(share).length >= share.count);
    expectAll(filled);
    if (shares.some((share) => takenOf(share).length > 0 && !filled.includes(share))) this.#pace.little();
    for (const share of shares) {
      const { line, count } = share;
      const hasMore = filled.includes(share);
      line.isCrowded = hasMore && count > FEW;
      // What was taken leaves its place in the index, for as long as anybody may still see it. No claim passes all of these
      // again. The next look finds what was committed late, or given back, before this time.
      line.since = hasMore
        ? takenOf(share).reduce((latest, row) => Math.max(latest, Date.parse(row.was_due)), line.since)
        : takenBefore(began);
    }
    this.#begin({ rows, lease }, asked);
  }

  async #refill(shares: readonly Share[]): Promise<void> {
    try {
      await this.#takeFree(shares);
    } catch (error) {
      this.#deps.logger.warn({ err: error }, 'invocations of functions could not be taken');
      await pause(AFTER_ERROR / 5);
    }
  }

  async #takeGoverned(shares: readonly Share[]): Promise<void> {
    const lease = randomUUID();
    const { leaseSeconds: seconds } = this.#options;
    const began = Date.now();
    const asked = performance.now();
    for (const { line } of shares) line.dueAt = Number.POSITIVE_INFINITY;
    try {
      const found = await this.#claims.claim(shares.map(wantOf), { lease, seconds });
      for (const [index, { line }] of shares.entries()) {
        const { rows, startsIn, again, isEmpty, gathering } = found[index]!;
        line.gathering = gathering;
        if (rows.length > 0 && isEmpty) this.#pace.little();
        if (again !== null) line.dueAt = Math.min(line.dueAt, began + again);
        if (isEmpty) line.since = takenBefore(began);
        const startsAt = new Map(rows.map((row, at) => [row, began + startsIn[at]!]));
        this.#begin({ rows, lease, isGoverned: true, startsAt }, asked);
      }
    } catch (error) {
      this.#deps.logger.warn(
        { err: error },
        'invocations of functions with a policy of delivery could not be taken',
      );
      this.#doubts.add(lease, functionsOf(shares));
      for (const { line } of shares) {
        line.gathering = undefined;
        line.dueAt = Math.min(line.dueAt, Date.now() + AFTER_ERROR);
      }
    }
  }

  #begin(claimed: Claimed, asked: number): void {
    const rows = this.#leases.hold(claimed.rows, claimed.lease, asked);
    if (rows.length === 0) return;
    for (const row of rows) this.#count(row, 1);
    this.#attempts.begin({ ...claimed, rows });
  }

  #count({ project_id: projectId, function_id: functionId }: QueueRow, by: 1 | -1): void {
    // A line may have been forgotten since what was taken of it was queued.
    const line = this.#lines.expect({ projectId, functionId }, Number.POSITIVE_INFINITY);
    line.inFlight += by;
    this.#load.inProgress.add(projectId, by);
  }

  #finish(row: QueueRow, lease: string, outcome: Outcome): void {
    const { project_id: projectId, function_id: functionId } = row;
    const { status, after } = outcome;
    // Its place is free. What is still to be written has a limit of its own.
    this.#count(row, -1);
    this.#load.unwritten.add(projectId, 1);
    this.#stirSoon();
    const written = Promise.all([
      this.#results.add(row, lease, outcome),
      ...(row.others ?? []).map((one) => this.#results.add(one, lease, ofOther(outcome))),
    ]);
    // Neither what the invocation was given nor what it has had is needed until then.
    const dueAgain = status === 'postponed' ? after : undefined;
    void written.then(([isOurs]) => this.#written({ projectId, functionId }, isOurs ? dueAgain : undefined));
  }

  /** The result of an invocation is written. `after`: it is due again then. */
  #written(
    { projectId, functionId }: Pick<Line, 'projectId' | 'functionId'>,
    after: number | undefined,
  ): void {
    this.#load.unwritten.add(projectId, -1);
    if (after !== undefined) this.#lines.expect({ projectId, functionId }, Date.now() + after);
    // There may be room for another one now, and one that had to wait for this.
    const { max_concurrency: most, ordering } = this.#lines.policyOf(functionId);
    if (most !== undefined || ordering === 'distinct_id') {
      this.#lines.expect({ projectId, functionId }, Date.now());
    }
    this.#stirSoon();
  }
}
