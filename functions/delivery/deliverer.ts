import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { Pool } from '../../db/pool.ts';
import type { Logger } from '../../telemetry/logger.ts';
import { keepBatchProgress, leaveBatch } from '../rows/delivery-batches.ts';
import { type FoundEvent, findEventsAt, LARGEST_SEEN } from '../rows/events.ts';
import { DISABLED } from '../rows/history.ts';
import { type Governed, listGoverned } from '../rows/paces.ts';
import { claim, keepProgress, listWaiting, NO_FUNCTION, type QueueRow, type Waiting } from '../rows/queue.ts';
import { type DisabledFunction, degradedFunctions, disabledFunctions } from '../rows/states.ts';
import { microsecondsOf } from '../rules/microseconds.ts';
import { SWITCHED_OFF } from '../rules/replay.ts';
import type { StoredEvent } from '../rules/stored-event.ts';
import { WATCHER } from '../rules/watcher.ts';
import { allOf, beyondRoom, sizeOf } from './batches.ts';
import { type ContentDependencies, Contents, type NotRunnable, type Runnable } from './contents.ts';
import { Delivery, type DeliveryDependencies, type Outcome } from './delivery.ts';
import { GovernedClaims } from './governed.ts';
import { PerProject } from './per-project.ts';
import { Results } from './results.ts';

export interface DelivererDependencies extends ContentDependencies, Omit<DeliveryDependencies, 'keep'> {
  /** Where events are read. */
  readPool: Pool;
  logger: Pick<Logger, 'warn'>;
}

export interface DelivererOptions {
  /** How many invocations are in progress at once. */
  places: number;
  /** How long an invocation belongs to a process that says nothing more of it, in seconds. */
  leaseSeconds: number;
  /** How often functions with waiting invocations are looked for, in milliseconds. */
  lookEvery: number;
  /** How many of them one look finds. The next one goes on after them. */
  mostFound: number;
}

export const DELIVERER_DEFAULTS: DelivererOptions = {
  ...{ places: 256, leaseSeconds: 30, lookEvery: 1_000, mostFound: 20_000 },
};

/** A function with waiting invocations, as this process knows it. */
interface Line {
  projectId: number;
  functionId: string;
  inFlight: number;
  /** When something is due, in milliseconds. Infinity: nothing that is known. */
  dueAt: number;
  /** What was due before this was taken by somebody. In milliseconds. */
  since: number;
}

/** How many places a function may fill. */
interface Share {
  line: Line;
  count: number;
}

/** A transaction that enqueues may be open for so long after the time that it gives its invocations. */
const OPEN = 30_000;
const LINES_AT_ONCE = 50;
const MOST_OF_ONE = 100;
/** Which part a project may have of the places that others do not hold, however many functions it has. */
const OF_A_PROJECT = 0.75;
/** Which part of these a function may have of what the others of its project leave. */
const OF_A_FUNCTION = 2 / 3;
const AFTER_ERROR = 5_000;
/** When invocations are tried again for which too much would have had to be read. */
const AFTER_MUCH = 200;
/** How much of events those of a project may have in progress, in characters, and all together. */
const MOST_CHARACTERS = { ofProject: 32_000_000, ofAll: 128_000_000 };
/** How many times events of a project are read at once. */
const MOST_READS = 4;
/** Results that are not written yet: at most so many for each place, and of one project a part of them. */
const UNWRITTEN = 4;
const UNWRITTEN_OF_A_PROJECT = 0.5;
/** Claims follow each other at this distance at least, in milliseconds, so that each takes many. */
const CLAIM_EVERY = 10;

type Found = Runnable | NotRunnable;

const hasPolicy = (found: Found): found is Runnable =>
  !('reason' in found) && (found.paused || found.delivery !== null);

/** Takes invocations that are due, and runs them. No function and no project gets all places. */
export class Deliverer {
  readonly #deps: DelivererDependencies;
  readonly #options: DelivererOptions;
  readonly #contents: Contents;
  readonly #results: Results;
  readonly #claims: GovernedClaims;
  /** Functions with a policy, as far as this process knows. */
  #governed: ReadonlyMap<string, Governed> = new Map();
  /** The claim of invocations with a policy that is under way. */
  #governing: Promise<void> | undefined;
  /** Places that this claim may fill. */
  #reserved = 0;
  readonly #lines = new Map<string, Line>();
  /** Invocations in progress. */
  readonly #inProgress = new PerProject();
  /** The characters of their events. */
  readonly #characters = new PerProject();
  /** How many times events are being read. */
  readonly #reading = new PerProject();
  /** Results that are not written yet. */
  readonly #unwritten = new PerProject();
  #degraded: ReadonlySet<string> = new Set();
  #nextLook = 0;
  /** The last function that the last look found, if there may be more after it. */
  #lookedUpTo: Pick<Waiting, 'project_id' | 'function_id'> = NO_FUNCTION;
  #wake: (() => void) | undefined;
  #isAwake = false;
  #isStirring = false;
  #isClosing = false;
  #running: Promise<void> | undefined;

  constructor(deps: DelivererDependencies, options: Partial<DelivererOptions> = {}) {
    this.#deps = deps;
    this.#options = { ...DELIVERER_DEFAULTS, ...options };
    this.#contents = new Contents(deps);
    this.#claims = new GovernedClaims(deps.pool);
    this.#results = new Results(deps.pool, deps.logger, this.#options.leaseSeconds * 1_000);
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Takes nothing more, and waits until everything that runs has ended. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#stir();
    await this.#running;
    await this.#governing;
    while (this.inFlight + this.#unwritten.all > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await this.#results.idle();
  }

  /** Invocations of these functions are due now. */
  due(functions: Iterable<{ projectId: number; functionId: string }>): void {
    const now = Date.now();
    for (const one of functions) this.#expect(one, now);
    this.#stir();
  }

  get inFlight(): number {
    return this.#inProgress.all;
  }

  #expect({ projectId, functionId }: { projectId: number; functionId: string }, at: number): Line {
    let line = this.#lines.get(functionId);
    if (!line) {
      line = { projectId, functionId, inFlight: 0, dueAt: at, since: 0 };
      this.#lines.set(functionId, line);
    }
    line.dueAt = Math.min(line.dueAt, at);
    return line;
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
        if (Date.now() >= this.#nextLook) await this.#look();
        while (!this.#isClosing && (await this.#take())) await pause(CLAIM_EVERY);
      } catch (error) {
        if (this.#isClosing) return;
        this.#deps.logger.warn({ err: error }, 'invocations of functions could not be taken');
        await this.#rest(AFTER_ERROR / 5);
      }
      if (!this.#isAwake && !this.#isClosing) await this.#rest(Math.max(CLAIM_EVERY, this.#untilNext()));
    }
  }

  /** How long nothing is expected, in milliseconds. */
  #untilNext(): number {
    const now = Date.now();
    let next = this.#nextLook;
    if (this.inFlight < this.#options.places) {
      for (const line of this.#lines.values()) {
        if (line.dueAt < next && this.#mayBeClaimed(line)) next = line.dueAt;
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

  /** Looks which functions have waiting invocations. */
  async #look(): Promise<void> {
    const began = Date.now();
    const { mostFound } = this.#options;
    const after = this.#lookedUpTo;
    const waiting = await listWaiting(this.#deps.pool, mostFound, after);
    const last = waiting.length < mostFound ? undefined : waiting.at(-1);
    this.#lookedUpTo = last ?? NO_FUNCTION;
    this.#governed = new Map((await listGoverned(this.#deps.pool)).map((one) => [one.function_id, one]));
    this.#degraded = await degradedFunctions(this.#deps.pool, WATCHER);
    const took = Date.now() - began;
    const known = new Set<string>();
    for (const { project_id: projectId, function_id: functionId, due_at: due } of waiting) {
      known.add(functionId);
      // What waits for others is due, and it is known when there is something to do.
      if (this.#governed.get(functionId)?.delivery?.batch && this.#isPlanned(functionId, began)) continue;
      const line = this.#expect({ projectId, functionId }, Date.parse(due));
      line.since = Math.min(line.since, Date.parse(due));
    }
    // A claim that is under way counts in lines that it knows.
    for (const [key, line] of this.#governing ? [] : this.#lines) {
      if (known.has(key) || line.inFlight > 0 || line.dueAt <= began) continue;
      if (!isAfter(line, after) || (last && isAfter(line, last))) continue;
      this.#lines.delete(key);
    }
    this.#nextLook = Date.now() + Math.max(this.#options.lookEvery, took * 20);
  }

  /** Takes what is due, as far as there are places. Returns whether there may be more. */
  async #take(): Promise<boolean> {
    const shares = this.#shares();
    if (shares.length === 0) return false;
    const lines = shares.filter(({ line }) => !this.#governed.has(line.functionId));
    if (lines.length < shares.length) {
      // Claims with a policy take longer. Others do not wait for them.
      this.#governing = this.#takeGoverned(shares.filter((one) => !lines.includes(one))).finally(() => {
        this.#governing = undefined;
        this.#stir();
      });
    }
    if (lines.length === 0) return true;
    const lease = randomUUID();
    const { leaseSeconds: seconds } = this.#options;
    const rows = await claim(
      this.#deps.pool,
      lines.map(({ line, count }) => ({
        ...{ projectId: line.projectId, functionId: line.functionId, count },
        since: new Date(line.since).toISOString(),
      })),
      { lease, seconds },
    );
    const taken = new Map<string, number>();
    for (const row of rows) taken.set(row.function_id, (taken.get(row.function_id) ?? 0) + 1);
    const now = Date.now();
    for (const { line, count } of lines) {
      if ((taken.get(line.functionId) ?? 0) < count) {
        line.dueAt = Number.POSITIVE_INFINITY;
        line.since = now - OPEN;
      }
    }
    for (const row of rows) this.#count(row, 1);
    void this.#deliver(rows, lease, {});
    return true;
  }

  async #takeGoverned(lines: readonly Share[]): Promise<void> {
    const lease = randomUUID();
    const { leaseSeconds: seconds } = this.#options;
    const began = Date.now();
    this.#reserved = lines.reduce((sum, { count }) => sum + count, 0);
    for (const { line } of lines) line.dueAt = Number.POSITIVE_INFINITY;
    try {
      const wants = lines.map(({ line, count }) => ({
        ...{ projectId: line.projectId, functionId: line.functionId, count },
        since: new Date(line.since).toISOString(),
      }));
      const found = await this.#claims.claim(wants, { lease, seconds });
      for (const [index, { line }] of lines.entries()) {
        const { rows, startsIn, again, isEmpty } = found[index]!;
        if (again !== null) line.dueAt = Math.min(line.dueAt, began + again);
        if (isEmpty) line.since = began - OPEN;
        for (const row of rows) this.#count(row, 1);
        const startsAt = startsIn.map((one) => began + one);
        if (rows.length > 0) void this.#deliver(rows, lease, { isGoverned: true, startsAt });
      }
    } catch (error) {
      this.#deps.logger.warn(
        { err: error },
        'invocations of functions with a policy of delivery could not be taken',
      );
      for (const { line } of lines) line.dueAt = Math.min(line.dueAt, Date.now() + AFTER_ERROR);
    } finally {
      this.#reserved = 0;
    }
  }

  #isPlanned(functionId: string, now: number): boolean {
    const { dueAt } = this.#lines.get(functionId) ?? { dueAt: Number.POSITIVE_INFINITY };
    return dueAt > now && dueAt !== Number.POSITIVE_INFINITY;
  }

  /** Whether more of a function may begin because something of it has ended. */
  #waitsForEnds(functionId: string): boolean {
    const { max_concurrency: most, ordering } = this.#governed.get(functionId)?.delivery ?? {};
    return most !== undefined || ordering === 'distinct_id';
  }

  /** What is paused need not be looked at, and one claim with policies is enough at a time. */
  #mayBeClaimed({ functionId }: Line): boolean {
    const governed = this.#governed.get(functionId);
    return !governed || (!governed.paused && !this.#governing);
  }

  /**
   * Divides the free places. A project gets at most a part of what others leave, a function a part of what its project has
   * left, and those of projects with the fewest come first.
   */
  #shares(): Share[] {
    const now = Date.now();
    let free = this.#options.places - this.inFlight - this.#reserved;
    const mostUnwritten = this.#options.places * UNWRITTEN;
    if (free <= 0 || this.#unwritten.all > mostUnwritten) return [];
    const hasRoom = ({ projectId }: Line) =>
      this.#unwritten.of(projectId) <= mostUnwritten * UNWRITTEN_OF_A_PROJECT &&
      this.#reading.of(projectId) < MOST_READS &&
      this.#characters.of(projectId) <= MOST_CHARACTERS.ofProject &&
      (this.#characters.all <= MOST_CHARACTERS.ofAll || this.#characters.of(projectId) === 0);
    const due = [...this.#lines.values()]
      .filter((one) => one.dueAt <= now && this.#mayBeClaimed(one) && hasRoom(one))
      .sort(
        (a, b) =>
          this.#rank(a) - this.#rank(b) ||
          this.#held(a) - this.#held(b) ||
          a.inFlight - b.inFlight ||
          a.dueAt - b.dueAt,
      )
      .slice(0, LINES_AT_ONCE);
    const shares: Share[] = [];
    const given = new PerProject();
    for (const line of due) {
      const held = this.#held(line) + given.of(line.projectId);
      const room = (free + held) * OF_A_PROJECT - held;
      // What it holds already counts, so that nobody fills all places bit by bit.
      const count = Math.min(
        this.#mostOf(line),
        Math.ceil((room + line.inFlight) * OF_A_FUNCTION - line.inFlight),
      );
      if (count <= 0) continue;
      shares.push({ line, count });
      given.add(line.projectId, count);
      free -= count;
    }
    return shares;
  }

  #mostOf({ functionId }: Line): number {
    return Math.min(MOST_OF_ONE, this.#governed.get(functionId)?.delivery?.max_concurrency ?? MOST_OF_ONE);
  }

  /** Degraded functions come after the others. */
  #rank({ functionId }: Line): number {
    return this.#degraded.has(functionId) ? 1 : 0;
  }

  #held({ projectId }: Line): number {
    return this.#inProgress.of(projectId);
  }

  #count({ project_id: projectId, function_id: functionId }: QueueRow, by: 1 | -1): void {
    const line = this.#lines.get(functionId);
    if (line) line.inFlight += by;
    this.#inProgress.add(projectId, by);
  }

  async #deliver(
    rows: readonly QueueRow[],
    lease: string,
    { isGoverned = false, startsAt = [] }: { isGoverned?: boolean; startsAt?: readonly number[] },
  ): Promise<void> {
    let events = new Map<string, FoundEvent>();
    let contents: Found[];
    let disabled: ReadonlyMap<string, DisabledFunction>;
    const projects = [...new Set(rows.map((row) => row.project_id))];
    for (const projectId of projects) this.#reading.add(projectId, 1);
    try {
      const stored = rows.flatMap(allOf).filter((row) => row.event_uuid !== null);
      const keys = stored.map((row) => ({
        ...{ projectId: row.project_id, uuid: row.event_uuid as string },
        timestamp: row.event_timestamp as string,
      }));
      const [found, known, stopped] = await Promise.all([
        findEventsAt(this.#deps.readPool, keys),
        this.#contents.of(
          rows.map((row) => ({
            ...{ projectId: row.project_id, functionId: row.function_id, version: row.version },
          })),
        ),
        disabledFunctions(this.#deps.pool, projects, WATCHER),
      ]);
      contents = known;
      disabled = stopped;
      events = new Map(found.map((one) => [`${one.project_id}:${one.uuid}`, one]));
    } catch (error) {
      this.#deps.logger.warn({ err: error }, 'invocations of functions could not be prepared');
      for (const row of rows) void this.#finish(row, lease, postponed(row, AFTER_ERROR));
      return;
    } finally {
      for (const projectId of projects) this.#reading.add(projectId, -1);
    }
    for (const [index, row] of rows.entries()) {
      const stopped = disabled.get(row.function_id);
      if (stopped) {
        void this.#finish(row, lease, whileDisabled(row, stopped));
        continue;
      }
      const found = contents[index] as Found;
      if (!isGoverned && hasPolicy(found)) {
        // This process did not know that. The function gets it back as it was, and by its policy the next time.
        this.#govern(row, found);
        void this.#finish(row, lease, postponed(row, 0));
        continue;
      }
      const eventOf = (one: QueueRow) => events.get(`${one.project_id}:${one.event_uuid}`);
      // Also if the function was switched on again since.
      if (wasOff(row, found)) void this.#finish(row, lease, ended('cancelled', SWITCHED_OFF));
      else if (row.others) void this.#batch(row, lease, found, eventOf, startsAt[index]);
      else void this.#one(row, lease, found, eventOf(row) ?? null, startsAt[index]);
    }
  }

  #govern({ project_id, function_id }: QueueRow, { delivery, paused }: Runnable): void {
    if (this.#governed.has(function_id)) return;
    const one = { project_id, function_id, delivery, paused };
    this.#governed = new Map([...this.#governed, [function_id, one]]);
  }

  /** Runs a batch. Those whose events are gone end, and those that are too much for one program wait for another batch. */
  async #batch(
    row: QueueRow,
    lease: string,
    found: Found,
    eventOf: (row: QueueRow) => FoundEvent | undefined,
    startsAt: number | undefined,
  ): Promise<void> {
    try {
      const overOf = (one: QueueRow) => withoutEvent(one, eventOf(one));
      const tooMany = beyondRoom(row, eventOf);
      if (!tooMany) {
        await this.#finish(row, lease, postponed(row, AFTER_MUCH));
        return;
      }
      if (tooMany.length > 0) {
        const seqs = tooMany.map(({ seq }) => seq);
        await leaveBatch(this.#deps.pool, seqs, lease);
      }
      const left = allOf(row).filter((one) => !tooMany.includes(one));
      const alive = left.filter((one) => !overOf(one));
      const first = alive.includes(row) ? row : alive[0];
      for (const one of left) {
        const over = overOf(one);
        if (over && (first || one !== row)) void this.#results.add(one, lease, over);
      }
      if (!first) {
        await this.#finish({ ...row, others: [] }, lease, overOf(row) as Outcome);
        return;
      }
      const items = alive.flatMap((one) => {
        const event = eventOf(one);
        return event ? [{ ...event, groups: (one.groups ?? null) as StoredEvent['groups'] }] : [];
      });
      const { attempt, progress, batch } = row;
      const others = alive.filter((one) => one !== first);
      const standing = { ...first, attempt, progress, batch, others };
      await this.#one(standing, lease, found, eventOf(first) ?? null, startsAt, items);
    } catch (error) {
      this.#deps.logger.warn({ err: error }, 'a batch of invocations could not be prepared');
      await this.#finish(row, lease, postponed(row, AFTER_ERROR));
    }
  }

  async #one(
    row: QueueRow,
    lease: string,
    found: Found,
    event: FoundEvent | null,
    startsAt: number | undefined,
    items?: readonly StoredEvent[],
  ): Promise<void> {
    let outcome: Outcome;
    if (startsAt !== undefined && startsAt > Date.now()) await pause(startsAt - Date.now());
    const over = withoutEvent(row, event);
    if ('reason' in found) outcome = ended(found.status, found.reason);
    else if (over) outcome = over;
    else {
      const { leaseSeconds: seconds } = this.#options;
      const keep: DeliveryDependencies['keep'] = ({ seq, batch }, progress) =>
        batch
          ? keepBatchProgress(this.#deps.pool, { seq, batch, lease, progress, seconds })
          : keepProgress(this.#deps.pool, { seq, lease, progress, seconds });
      const characters = (items ?? (event ? [event] : [])).reduce((sum, one) => sum + sizeOf(one), 0);
      this.#characters.add(row.project_id, characters);
      try {
        outcome = await new Delivery({ ...this.#deps, keep }, row, found, event, items).run();
      } catch (error) {
        this.#deps.logger.warn({ err: error, functionId: row.function_id }, 'an invocation could not be run');
        outcome = postponed(row, AFTER_ERROR);
      } finally {
        this.#characters.add(row.project_id, -characters);
      }
    }
    await this.#finish(row, lease, outcome);
  }

  async #finish(row: QueueRow, lease: string, outcome: Outcome): Promise<void> {
    const { project_id: projectId, function_id: functionId } = row;
    // Its place is free. What is still to be written has a limit of its own.
    this.#count(row, -1);
    this.#unwritten.add(projectId, 1);
    this.#stirSoon();
    const [isOurs] = await Promise.all([
      this.#results.add(row, lease, outcome),
      ...(row.others ?? []).map((one) => this.#results.add(one, lease, ofOther(outcome))),
    ]);
    this.#unwritten.add(projectId, -1);
    if (isOurs && outcome.status === 'postponed') {
      this.#expect({ projectId, functionId }, Date.now() + outcome.after);
    }
    // There may be room for another one now, and one that had to wait for this.
    if (this.#waitsForEnds(functionId)) this.#expect({ projectId, functionId }, Date.now());
    this.#stirSoon();
  }
}

/** Whether a function comes after another one in the order of the queue. */
const isAfter = (
  { projectId, functionId }: Line,
  { project_id, function_id }: Pick<Waiting, 'project_id' | 'function_id'>,
): boolean => projectId > project_id || (projectId === project_id && functionId > function_id);

const NOTHING = { cost: 0, attempts: [], after: 0, attempt: 0, progress: null, logs: [], counts: [] };

const ended = (status: 'cancelled' | 'failed', error: string): Outcome => ({ ...NOTHING, status, error });

/** Answers whether the function was switched off while an invocation waited. */
const wasOff = ({ created_at }: QueueRow, found: Found): boolean =>
  !('reason' in found) && microsecondsOf(created_at) < found.enabledAt;

const DELETED = 'The event was deleted.';
const TOO_LARGE = `The event and its person have more than ${LARGEST_SEEN.toLocaleString('en')} characters together, which is the most that functions take.`;

/** What becomes of an invocation whose event is not at hand. Undefined: it is, or it needs none. */
function withoutEvent(row: QueueRow, event: FoundEvent | null | undefined): Outcome | undefined {
  if (!event) return row.event_uuid === null ? undefined : ended('cancelled', DELETED);
  if (event.unread === 'large') return ended('failed', TOO_LARGE);
  return event.unread === 'later' ? postponed(row, AFTER_MUCH) : undefined;
}

/** What became of the others of a batch. What was sent and answered is listed with the one that stands for it. */
const ofOther = ({ status, error, attempts, after, attempt }: Outcome): Outcome => ({
  ...{ ...NOTHING, status, error, after, attempt },
  attempts: attempts.map((one) => ({ ...one, request_body: null, response_body: null })),
});

/** What waits outlasts a pause of its function. If the function is disabled for good, it fails and can be run again later. */
const whileDisabled = (row: QueueRow, { seconds }: DisabledFunction): Outcome =>
  seconds === null ? ended('failed', DISABLED) : postponed(row, seconds * 1_000 * (1 + Math.random() / 10));

/** The invocation is tried again as it is. */
const postponed = (row: QueueRow, after: number): Outcome => ({
  ...{ ...NOTHING, status: 'postponed', error: null, after },
  ...{ attempt: row.attempt, progress: row.progress },
});
