import type { FastifyRequest } from 'fastify';

/** Milliseconds after a line in which further refusals are only counted. */
const QUIET = 1_000;

/**
 * Tells the log of faults of ours, each, and that requests are sent away for now, once a second: while Postgres is
 * away that is every request, and a line for each would fill the disk that is to become free again.
 */
export class RefusalLog {
  readonly #now: () => number;
  #quietUntil = 0;
  #untold = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  tell(request: Pick<FastifyRequest, 'id' | 'log'>, error: unknown, status: number, route: string): void {
    const about = { err: error, reqId: request.id, url: route };
    if (status !== 503) {
      request.log.error(about, 'request failed');
      return;
    }
    const now = this.#now();
    if (now < this.#quietUntil) {
      this.#untold += 1;
      return;
    }
    request.log.warn({ ...about, untold: this.#untold }, 'requests are sent away for now');
    this.#untold = 0;
    this.#quietUntil = now + QUIET;
  }
}
