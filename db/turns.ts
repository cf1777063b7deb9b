/** Who asks for a turn: a project, for as long as somebody waits for the result. */
export interface Asker {
  projectId: number;
  /** Is aborted when nobody waits any more. */
  signal?: AbortSignal | undefined;
}

export interface TurnOptions {
  /** How many turns there are at once. */
  atOnce: number;
  /** How many of them one asker may have. By default half, so that nobody ever has all of them. */
  perAsker?: number;
  /** How many works of one asker may wait. */
  waitingPerAsker?: number;
  /** Milliseconds that a work waits for its turn. */
  patience?: number;
}

/** A work did not get its turn. */
export class NoTurnError extends Error {
  override readonly name = 'NoTurnError';
  /** Whether the asker itself has too much under way. If not, all together have. */
  readonly isOwnFault: boolean;

  constructor(isOwnFault: boolean) {
    super(
      isOwnFault
        ? 'Too many of your requests are under way. Wait for some of them to end.'
        : 'Too many expensive requests are under way at the moment. Try again.',
    );
    this.isOwnFault = isOwnFault;
  }
}

const WAITING_PER_ASKER = 20;
const PATIENCE = 10_000;

/** A project, or whoever else shares with others. */
type Who = number | string;

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
 * Shares something scarce fairly between those who ask, mostly projects. The next turn goes to the one with the fewest
 * turns, and of several such to the one that waits longest. Work that has its turn must not wait for another turn.
 */
export class Turns {
  readonly #atOnce: number;
  readonly #perAsker: number;
  readonly #waitingPerAsker: number;
  readonly #patience: number;
  readonly #shares = new Map<Who, Share>();
  #running = 0;
  #arrived = 0;

  constructor({ atOnce, perAsker, waitingPerAsker, patience }: TurnOptions) {
    this.#atOnce = Math.max(1, atOnce);
    this.#perAsker = perAsker ?? Math.max(1, Math.floor(this.#atOnce / 2));
    this.#waitingPerAsker = waitingPerAsker ?? WAITING_PER_ASKER;
    this.#patience = patience ?? PATIENCE;
  }

  /** How many works wait. */
  get waiting(): number {
    return [...this.#shares.values()].reduce((sum, one) => sum + one.waiting.size, 0);
  }

  /** Does the work when it is its turn. Throws a NoTurnError, or the reason of the signal, if the turn does not come. */
  async take<T>({ projectId, signal }: Asker, work: () => Promise<T>): Promise<T> {
    const leave = await this.enter(projectId, signal);
    try {
      return await work();
    } finally {
      leave();
    }
  }

  /** Waits for a turn of `who`, and returns how to give it back. Only the first call gives it back. */
  async enter(who: Who, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    await this.#join(who, signal);
    let left = false;
    return () => {
      if (!left) this.#leave(who);
      left = true;
    };
  }

  #join(who: Who, signal: AbortSignal | undefined): void | Promise<void> {
    const share = this.#shares.get(who) ?? { running: 0, waiting: new Set() };
    this.#shares.set(who, share);
    if (this.#running < this.#atOnce && share.running < this.#perAsker) {
      this.#begin(share);
      return;
    }
    if (share.waiting.size >= this.#waitingPerAsker) throw new NoTurnError(true);
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        clearTimeout(late);
        signal?.removeEventListener('abort', gone);
        share.waiting.delete(waiting);
        this.#forget(who, share);
        end();
      };
      this.#arrived += 1;
      const waiting: Waiting = { number: this.#arrived, start: () => settle(resolve) };
      const gone = () => settle(() => reject(signal?.reason));
      const late = setTimeout(
        () => settle(() => reject(new NoTurnError(share.running >= this.#perAsker))),
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

  #leave(who: Who): void {
    const share = this.#shares.get(who) as Share;
    share.running -= 1;
    this.#running -= 1;
    this.#startNext();
    this.#forget(who, share);
  }

  #startNext(): void {
    let next: { share: Share; first: Waiting } | undefined;
    for (const share of this.#shares.values()) {
      const [first] = share.waiting;
      if (!first || share.running >= this.#perAsker) continue;
      const fewer = next === undefined || share.running < next.share.running;
      const longer = share.running === next?.share.running && first.number < next.first.number;
      if (fewer || longer) next = { share, first };
    }
    if (!next) return;
    this.#begin(next.share);
    next.first.start();
  }

  #forget(who: Who, share: Share): void {
    if (share.running === 0 && share.waiting.size === 0 && this.#shares.get(who) === share) {
      this.#shares.delete(who);
    }
  }
}
