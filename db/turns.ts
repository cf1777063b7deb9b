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
  /** How many of the turns are kept for those who have used little time lately, however many others ask. By default none. */
  kept?: number;
  /** The clock, in milliseconds. */
  now?: () => number;
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
/** What an asker has used counts half after so many milliseconds. */
const HALF_FORGOTTEN = 60_000;
/** Less than so many milliseconds make no difference between askers. */
const ALIKE = 1_000;
/** Whoever has used so many milliseconds lately gets none of the turns that are kept. */
const LITTLE = 10_000;
/** Of so many askers it is known what they have used, although they ask for nothing. */
const MOST_REMEMBERED = 1_000;

/** A project, or whoever else shares with others. */
type Who = number | string;

interface Waiting {
  /** The order of arrival. */
  number: number;
  start(): void;
}

/** What an asker has, wants and has used. */
class Share {
  running = 0;
  readonly waiting = new Set<Waiting>();
  readonly #now: () => number;
  #used = 0;
  #at: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#at = now();
  }

  begin(): void {
    this.lately();
    this.running += 1;
  }

  end(): void {
    this.lately();
    this.running -= 1;
  }

  /** The milliseconds that its turns have taken lately. */
  lately(): number {
    const now = this.#now();
    const passed = now - this.#at;
    this.#used = this.#used * 0.5 ** (passed / HALF_FORGOTTEN) + this.running * passed;
    this.#at = now;
    return this.#used;
  }

  get isIdle(): boolean {
    return this.running === 0 && this.waiting.size === 0;
  }
}

/**
 * Shares something scarce fairly between those who ask, mostly projects. The next turn goes to the one with the fewest turns, of
 * several such to the one that has used the least time lately, and of those to the one that waits longest. So whoever asks rarely
 * does not wait for all that others have asked before. Work that has its turn must not wait for another turn.
 */
export class Turns {
  readonly #atOnce: number;
  readonly #kept: number;
  readonly #perAsker: number;
  readonly #now: () => number;
  readonly #waitingPerAsker: number;
  readonly #patience: number;
  readonly #shares = new Map<Who, Share>();
  #running = 0;
  #arrived = 0;

  constructor({ atOnce, perAsker, waitingPerAsker, patience, kept = 0, now }: TurnOptions) {
    this.#atOnce = Math.max(1, atOnce);
    // Whoever uses much gets on with one turn at least.
    this.#kept = Math.min(kept, this.#atOnce - 1);
    this.#perAsker = perAsker ?? Math.max(1, Math.floor(this.#atOnce / 2));
    this.#waitingPerAsker = waitingPerAsker ?? WAITING_PER_ASKER;
    this.#patience = patience ?? PATIENCE;
    this.#now = now ?? (() => performance.now());
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
    const share = this.#shares.get(who) ?? new Share(this.#now);
    this.#shares.set(who, share);
    if (this.#mayBegin(share)) {
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
        () => settle(() => reject(new NoTurnError(this.#hasEnough(share)))),
        this.#patience,
      );
      signal?.addEventListener('abort', gone);
      share.waiting.add(waiting);
    });
  }

  /** Whether an asker has as much as it may have while others may want something. */
  #hasEnough(share: Share): boolean {
    return share.running >= this.#perAsker || share.lately() >= LITTLE;
  }

  #mayBegin(share: Share): boolean {
    if (share.running >= this.#perAsker) return false;
    const room = this.#atOnce - this.#running;
    return room > this.#kept || (room > 0 && share.lately() < LITTLE);
  }

  #begin(share: Share): void {
    share.begin();
    this.#running += 1;
  }

  #leave(who: Who): void {
    const share = this.#shares.get(who) as Share;
    share.end();
    this.#running -= 1;
    this.#startNext();
    this.#forget(who, share);
  }

  #startNext(): void {
    let next: { share: Share; first: Waiting; rank: number[] } | undefined;
    for (const share of this.#shares.values()) {
      const [first] = share.waiting;
      if (!first || !this.#mayBegin(share)) continue;
      const rank = [share.running, Math.floor(share.lately() / ALIKE), first.number];
      if (next === undefined || isBefore(rank, next.rank)) next = { share, first, rank };
    }
    if (!next) return;
    this.#begin(next.share);
    next.first.start();
  }

  /** Forgets an asker who wants nothing, unless it has used something. If too many are remembered, all such are forgotten. */
  #forget(who: Who, share: Share): void {
    if (share.isIdle && share.lately() < ALIKE) this.#shares.delete(who);
    if (this.#shares.size <= MOST_REMEMBERED) return;
    for (const [other, { isIdle }] of this.#shares) if (isIdle) this.#shares.delete(other);
  }
}

/** Compares numbers one after another. */
function isBefore(one: readonly number[], other: readonly number[]): boolean {
  const place = one.findIndex((number, index) => number !== other[index]);
  return place >= 0 && (one[place] as number) < (other[place] as number);
}
