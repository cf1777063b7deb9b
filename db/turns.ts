/** Who asks for a turn: a project, for as long as somebody waits for the result. */
export interface Asker {
  projectId: number;
  /** Is aborted when nobody waits any more. */
  signal?: AbortSignal | undefined;
}

export interface TurnOptions {
  /** How many turns there are at once. */
  atOnce: number;
  /** How many of them a project may have. By default half, so that one project never has all of them. */
  perProject?: number;
  /** How many works of a project may wait. */
  waitingPerProject?: number;
  /** Milliseconds that a work waits for its turn. */
  patience?: number;
}

/** A work did not get its turn. */
export class NoTurnError extends Error {
  override readonly name = 'NoTurnError';
  /** Whether the project itself has too much under way. If not, all projects together have. */
  readonly isOwnFault: boolean;

  constructor(isOwnFault: boolean) {
    super(
      isOwnFault
        ? 'This project has too many expensive requests under way. Wait for some of them to end.'
        : 'Too many expensive requests are under way at the moment. Try again.',
    );
    this.isOwnFault = isOwnFault;
  }
}

const WAITING_PER_PROJECT = 20;
const PATIENCE = 10_000;

interface Waiting {
  /** The order of arrival. */
  number: number;
  start(): void;
}

interface Share {
  running: number;
  readonly waiting: Set<Waiting>;
}

/**
 * Shares something scarce fairly between projects. The next turn goes to the project with the fewest turns, and of
 * several such projects to the one that waits longest. Work that has its turn must not wait for another turn.
 */
export class Turns {
  readonly #atOnce: number;
  readonly #perProject: number;
  readonly #waitingPerProject: number;
  readonly #patience: number;
  readonly #shares = new Map<number, Share>();
  #running = 0;
  #arrived = 0;

  constructor({ atOnce, perProject, waitingPerProject, patience }: TurnOptions) {
    this.#atOnce = Math.max(1, atOnce);
    this.#perProject = perProject ?? Math.max(1, Math.floor(this.#atOnce / 2));
    this.#waitingPerProject = waitingPerProject ?? WAITING_PER_PROJECT;
    this.#patience = patience ?? PATIENCE;
  }

  /** Does the work when it is its turn. Throws a NoTurnError, or the reason of the signal, if the turn does not come. */
  async take<T>(asker: Asker, work: () => Promise<T>): Promise<T> {
    asker.signal?.throwIfAborted();
    await this.#join(asker);
    try {
      return await work();
    } finally {
      this.#leave(asker.projectId);
    }
  }

  #join({ projectId, signal }: Asker): void | Promise<void> {
    const share = this.#shares.get(projectId) ?? { running: 0, waiting: new Set() };
    this.#shares.set(projectId, share);
    if (this.#running < this.#atOnce && share.running < this.#perProject) {
      this.#begin(share);
      return;
    }
    if (share.waiting.size >= this.#waitingPerProject) throw new NoTurnError(true);
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        clearTimeout(late);
        signal?.removeEventListener('abort', gone);
        share.waiting.delete(waiting);
        this.#forget(projectId, share);
        end();
      };
      this.#arrived += 1;
      const waiting: Waiting = { number: this.#arrived, start: () => settle(resolve) };
      const gone = () => settle(() => reject(signal?.reason));
      const late = setTimeout(
        () => settle(() => reject(new NoTurnError(share.running >= this.#perProject))),
        this.#patience,
      );
      signal?.addEventListener('abort', gone);
      share.waiting.add(waiting);
    });
  }

  #begin(share: Share): void {
    share.running += 1;
    this.#running += 1;
  }

  #leave(projectId: number): void {
    const share = this.#shares.get(projectId) as Share;
    share.running -= 1;
    this.#running -= 1;
    this.#startNext();
    this.#forget(projectId, share);
  }

  #startNext(): void {
    let next: { share: Share; first: Waiting } | undefined;
    for (const share of this.#shares.values()) {
      const [first] = share.waiting;
      if (!first || share.running >= this.#perProject) continue;
      const fewer = next === undefined || share.running < next.share.running;
      const longer = share.running === next?.share.running && first.number < next.first.number;
      if (fewer || longer) next = { share, first };
    }
    if (!next) return;
    this.#begin(next.share);
    next.first.start();
  }

  #forget(projectId: number, share: Share): void {
    if (share.running === 0 && share.waiting.size === 0 && this.#shares.get(projectId) === share) {
      this.#shares.delete(projectId);
    }
  }
}
