import { LRUCache } from 'lru-cache';

/** How much of the thread that receives events transformations may take, in milliseconds for each second. */
const OF_ALL = 500;
const OF_ONE = 400;
/** What is saved up while nothing runs, in seconds. */
const SAVED = 0.5;
/** Milliseconds that an event of a project may take on average. Those that take longer are left to other threads. */
const OF_AN_EVENT = 1;
/** After so many events the average says something. */
const ENOUGH = 20;
/** For how long, in milliseconds: at first, and at most. It doubles as long as it goes on. */
const FIRST_EXILE = 1_000;
const LONGEST_EXILE = 60_000;
const FORGIVEN = 120_000;
const MOST_PROJECTS = 5_000;
/** Milliseconds of one turn of the event loop. */
const OF_A_TURN = 20;

/** What comes back by itself, up to a limit, and may be overdrawn. */
class Bucket {
  readonly #rate: number;
  #left: number;
  #at: number;

  constructor(rate: number, now: number) {
    this.#rate = rate;
    this.#left = rate * SAVED;
    this.#at = now;
  }

  left(now: number): number {
    this.#left = Math.min(this.#rate * SAVED, this.#left + ((now - this.#at) * this.#rate) / 1_000);
    this.#at = now;
    return this.#left;
  }

  take(amount: number): void {
    this.#left -= amount;
  }
}

interface Share {
  bucket: Bucket;
  /** An average over the last events, in milliseconds. */
  average: number;
  events: number;
  exiledUntil: number;
  exile: number;
}

/**
 * Decides whether the thread that receives events has time for the transformations of a project. Those of one project leave
 * time for the others, and all of them leave time for receiving.
 */
export class MainThreadBudget {
  readonly #now: () => number;
  readonly #all: Bucket;
  readonly #shares = new LRUCache<number, Share>({ max: MOST_PROJECTS });
  #ofTurn = 0;
  #isTurn = false;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#all = new Bucket(OF_ALL, now());
  }

  hasTime(projectId: number): boolean {
    const now = this.#now();
    const share = this.#shares.get(projectId);
    if (!share) return this.#all.left(now) > 0;
    return share.exiledUntil <= now && share.bucket.left(now) > 0 && this.#all.left(now) > 0;
  }

  /** Whether this turn of the event loop has time for more. */
  get hasTurn(): boolean {
    return this.#ofTurn < OF_A_TURN;
  }

  /** An event of the project took so many milliseconds. */
  spent(projectId: number, milliseconds: number): void {
    const share = this.#share(projectId);
    share.bucket.take(milliseconds);
    this.#all.take(milliseconds);
    share.events += 1;
    share.average += (milliseconds - share.average) / Math.min(share.events, ENOUGH * 5);
    if (share.events >= ENOUGH && share.average > OF_AN_EVENT) this.exile(projectId);
    this.#ofTurn += milliseconds;
    if (this.#isTurn) return;
    this.#isTurn = true;
    setImmediate(() => {
      this.#isTurn = false;
      this.#ofTurn = 0;
    });
  }

  /** Leaves the events of the project to other threads for a while. */
  exile(projectId: number): void {
    const share = this.#share(projectId);
    const now = this.#now();
    share.exile = now - share.exiledUntil > FORGIVEN ? FIRST_EXILE : Math.min(share.exile * 2, LONGEST_EXILE);
    share.exiledUntil = now + share.exile;
    share.events = 0;
    share.average = 0;
  }

  #share(projectId: number): Share {
    let share = this.#shares.get(projectId);
    if (!share) {
      const bucket = new Bucket(OF_ONE, this.#now());
      share = { bucket, average: 0, events: 0, exiledUntil: Number.NEGATIVE_INFINITY, exile: FIRST_EXILE };
      this.#shares.set(projectId, share);
    }
    return share;
  }
}
