/** Events that wait: those of one request, or of all requests of a project. */
export interface Amount {
  bytes: number;
  events: number;
}

/** A request in the queue. */
export interface Queued extends Amount {
  readonly projectId: number;
  readonly submittedAt: number;
}

/**
 * The requests that wait for a transaction. Projects take turns, request by request, so that few events of one never
 * wait behind many of another. The requests of one project stay in the order in which they came.
 */
export class RequestQueue<R extends Queued> {
  /** Requests of each project. The project whose turn is next comes first. */
  readonly #projects = new Map<number, R[]>();
  bytes = 0;
  events = 0;

  push(request: R): void {
    const waiting = this.#projects.get(request.projectId);
    if (waiting) waiting.push(request);
    else this.#projects.set(request.projectId, [request]);
    this.bytes += request.bytes;
    this.events += request.events;
  }

  /** For how many milliseconds the first request has waited. */
  age(): number {
    let first = Number.POSITIVE_INFINITY;
    for (const [request] of this.#projects.values()) first = Math.min(first, (request as R).submittedAt);
    return performance.now() - first;
  }

  /**
   * Takes as many requests as fit into the most. A larger one is taken alone, but only if `withLarge`; otherwise it
   * keeps its place, and others of its project wait behind it.
   */
  take(most: Amount, withLarge: boolean): R[] {
    const taken: R[] = [];
    const sum: Amount = { bytes: 0, events: 0 };
    const isLarge = (one: R) => one.bytes > most.bytes || one.events > most.events;
    const fits = (one: R) => sum.bytes + one.bytes <= most.bytes && sum.events + one.events <= most.events;
    const counts = new Map<number, number>();
    let inTurn = [...this.#projects];
    for (let round = 0; inTurn.length > 0; round += 1) {
      inTurn = inTurn.filter(([projectId, waiting]) => {
        const next = waiting[round];
        if (next === undefined || (isLarge(next) ? !(withLarge && taken.length === 0) : !fits(next)))
          return false;
        taken.push(next);
        sum.bytes += next.bytes;
        sum.events += next.events;
        // The map keeps its order: whoever had a turn last comes last.
        counts.delete(projectId);
        counts.set(projectId, round + 1);
        return true;
      });
    }
    for (const [projectId, count] of counts) this.#remove(projectId, count);
    this.bytes -= sum.bytes;
    this.events -= sum.events;
    return taken;
  }

  /** Removes the first requests of a project, whose next turn comes after that of all others. */
  #remove(projectId: number, count: number): void {
    const waiting = this.#projects.get(projectId) as R[];
    this.#projects.delete(projectId);
    if (count < waiting.length) this.#projects.set(projectId, waiting.slice(count));
  }
}

/** How much each project has accepted and not committed, and what is left for whom. */
export class Shares {
  readonly #most: Amount;
  readonly #ofOne: Amount;
  readonly #projects = new Map<number, Amount>();
  readonly total: Amount = { bytes: 0, events: 0 };

  /** A project has half of the room at most, so that one that sends too much leaves room for others. */
  constructor(most: Amount) {
    this.#most = most;
    this.#ofOne = { bytes: most.bytes / 2, events: most.events / 2 };
  }

  /** Whether there is room for so much more. What is larger than its share has room where nothing else waits. */
  hasRoom(projectId: number, more: Amount): boolean {
    const own = this.#projects.get(projectId);
    return fitsInto(this.#ofOne, own, more) && fitsInto(this.#most, this.total, more);
  }

  add(projectId: number, { bytes, events }: Amount): void {
    const own = this.#projects.get(projectId) ?? { bytes: 0, events: 0 };
    this.#projects.set(projectId, { bytes: own.bytes + bytes, events: own.events + events });
    this.total.bytes += bytes;
    this.total.events += events;
  }

  remove(projectId: number, { bytes, events }: Amount): void {
    const own = this.#projects.get(projectId) as Amount;
    own.bytes -= bytes;
    own.events -= events;
    if (own.events === 0) this.#projects.delete(projectId);
    this.total.bytes -= bytes;
    this.total.events -= events;
  }
}

const fitsInto = (most: Amount, held: Amount | undefined, more: Amount): boolean =>
  held === undefined ||
  held.events === 0 ||
  (held.bytes < most.bytes &&
    held.bytes + more.bytes <= most.bytes &&
    held.events + more.events <= most.events);
