import { LRUCache } from 'lru-cache';
import { Allowances } from '../values/allowances.ts';
import { clientNetwork } from '../values/clients.ts';
import { errors } from './errors.ts';

/** How many keys are remembered, of those that were right and of those that were wrong. */
const MOST_RIGHT = 50_000;
const MOST_WRONG = 10_000;
/** How long a key that nobody has counts as wrong without asking again, in milliseconds. */
const WRONG_FOR = 60_000;
/** Statuses that refuse a request because of its key, and those that refuse what the key asks for. */
const WRONG_KEY = 401;
const REFUSED = new Set([403, 404]);

/**
 * What this process remembers of personal keys, by their hashes. It decides nothing about access. It bounds what refused
 * requests cost: strangers by their address, and keys by themselves. A key that has been right is never refused because
 * of its address, so a stranger behind the same address does not lock it out.
 */
export class KnownKeys {
  /** Whose keys were right when they were last looked up. */
  readonly #owners = new LRUCache<string, string>({ max: MOST_RIGHT });
  /** When keys were looked up that nobody has. */
  readonly #wrong = new LRUCache<string, number>({ max: MOST_WRONG });
  readonly #strangers: Allowances;
  readonly #refusals: Allowances;
  readonly #now: () => number;

  /** `perMinute` is how many refused requests an address or a key may make; 0 means any number. */
  constructor(perMinute: number, now: () => number = Date.now) {
    this.#strangers = new Allowances(perMinute);
    this.#refusals = new Allowances(perMinute);
    this.#now = now;
  }

  /** Names who makes a request, before its key is looked up: the owner of a key that is known, else the address. */
  sender(hash: string | undefined, ip: string): string {
    const owner = hash === undefined ? undefined : this.#owners.get(hash);
    return owner ?? `address ${clientNetwork(ip)}`;
  }

  /** Throws a 429 if the key, or the address of a key that is not known, was refused too often lately. */
  admit(hash: string, ip: string): void {
    const now = this.#now();
    const ofKey = this.#refusals.wait(hash, now);
    if (ofKey > 0) {
      throw errors.tooMany(
        `Too many requests with this key were refused with 403 or 404. Expected available in ${ofKey} seconds.`,
        ofKey,
      );
    }
    const ofAddress = this.#owners.has(hash) ? 0 : this.#strangers.wait(clientNetwork(ip), now);
    if (ofAddress > 0) {
      throw errors.tooMany(
        `Too many requests from this address had an invalid key. Expected available in ${ofAddress} seconds.`,
        ofAddress,
      );
    }
  }

  /** Returns whether it was looked up lately that nobody has this key. Nobody can get it later: keys are random. */
  isWrong(hash: string): boolean {
    const at = this.#wrong.get(hash);
    return at !== undefined && this.#now() - at < WRONG_FOR;
  }

  /** Remembers that a key was refused. `isNobodys`: nobody has it. Otherwise it may work again. */
  noteWrong(hash: string, { isNobodys }: { isNobodys: boolean }): void {
    this.#owners.delete(hash);
    if (isNobodys) this.#wrong.set(hash, this.#now());
  }

  /** Remembers whose key it is: that of a user, or of a project. */
  noteRight(hash: string, owner: `user ${number}` | `project ${number}`): void {
    this.#owners.set(hash, owner);
  }

  /** Counts an answer that refused a request with this key. */
  noteAnswer(status: number, hash: string, ip: string): void {
    if (status === WRONG_KEY) this.#strangers.count(clientNetwork(ip), this.#now());
    else if (REFUSED.has(status)) this.#refusals.count(hash, this.#now());
  }
}
