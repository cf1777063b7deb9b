import { NotNowError } from '../effects.ts';

interface Host {
  inFlight: number;
  /** Failures since the last answer. */
  failures: number;
  /** Until then only one request is made, as a probe. Milliseconds; 0: the host answers. */
  closedUntil: number;
  isProbed: boolean;
  pause: number;
}

/**
 * A request has ended. `answered`: whether there was any answer of the server. Null: the request was refused before it was sent,
 * which says nothing about the server.
 */
export type Leave = (answered: boolean | null, now?: number) => void;

/** After so many failures one after the other, a host is left alone. */
const MOST_FAILURES = 10;
const FIRST_PAUSE = 5_000;
const LONGEST_PAUSE = 60_000;
const BUSY_PAUSE = 250;
/** A host with neither requests nor failures is forgotten when there are more than so many. */
const MOST_HOSTS = 10_000;

/** Keeps hosts that are slow or dead from taking all places. Each project has hosts of its own. */
export class Hosts {
  readonly #hosts = new Map<string, Host>();
  readonly #most: number;

  /** `most`: how many requests one host may have in flight. */
  constructor(most: number) {
    this.#most = most;
  }

  /**
   * Throws a NotNowError, which shows `shown`, if the host should not be asked now. Otherwise what it returns must be called
   * when the request has ended.
   */
  enter(name: string, shown: string, now = Date.now()): Leave {
    const host = this.#of(name);
    const isProbe = host.closedUntil > 0;
    if (isProbe) {
      if (host.isProbed || now < host.closedUntil) {
        const wait = Math.max(host.closedUntil - now, host.isProbed ? FIRST_PAUSE : 0);
        throw new NotNowError(shown, wait);
      }
      host.isProbed = true;
    } else if (host.inFlight >= this.#most) throw new NotNowError(shown, BUSY_PAUSE);
    host.inFlight += 1;
    return (answered, then = Date.now()) => this.#leave(name, { answered, isProbe }, then);
  }

  #leave(
    name: string,
    { answered, isProbe }: { answered: boolean | null; isProbe: boolean },
    now: number,
  ): void {
    const host = this.#of(name);
    host.inFlight -= 1;
    if (answered) {
      host.failures = 0;
      host.closedUntil = 0;
      host.pause = FIRST_PAUSE;
    } else if (answered === false) {
      host.failures += 1;
      // What was under way when the host was left alone says nothing about how long it stays silent.
      if (isProbe || (host.failures >= MOST_FAILURES && host.closedUntil === 0)) {
        host.closedUntil = now + host.pause;
        host.pause = Math.min(host.pause * 2, LONGEST_PAUSE);
      }
    }
    if (isProbe) host.isProbed = false;
    if (host.inFlight === 0 && host.failures === 0 && this.#hosts.size > MOST_HOSTS) this.#hosts.delete(name);
  }

  #of(name: string): Host {
    let host = this.#hosts.get(name);
    if (!host) {
      host = { inFlight: 0, failures: 0, closedUntil: 0, isProbed: false, pause: FIRST_PAUSE };
      this.#hosts.set(name, host);
    }
    return host;
  }
}
