import { refuse } from '../../refusals.ts';

const MIB = 1024 * 1024;
/** What may wait for transformations that take long: requests and bytes of one project, and of all. */
const OF_ONE = { requests: 20, bytes: 8 * MIB };
const OF_ALL = { requests: 200, bytes: 48 * MIB };
const RETRY_SECONDS = 5;

/** Nothing is lost: the client sends the events again. */
export const tooMuch = () =>
  refuse.unavailable(
    'Too many events of the project wait for its transformations. Send them again.',
    RETRY_SECONDS,
  );

interface Amount {
  requests: number;
  bytes: number;
}

const hasRoom = (held: Amount, bytes: number, most: Amount): boolean =>
  // A single request may be larger than what several may have together.
  held.requests === 0 || (held.requests < most.requests && held.bytes + bytes <= most.bytes);

/** Bounds what is in memory while transformations take long. */
export class Waiting {
  readonly #byProject = new Map<number, Amount>();
  readonly #all: Amount = { requests: 0, bytes: 0 };

  /** Throws a Refusal if too much waits already. Call what it returns when the request waits no more. */
  enter(projectId: number, bytes: number): () => void {
    const own = this.#byProject.get(projectId) ?? { requests: 0, bytes: 0 };
    if (!hasRoom(own, bytes, OF_ONE) || !hasRoom(this.#all, bytes, OF_ALL)) {
      throw tooMuch();
    }
    this.#byProject.set(projectId, own);
    for (const held of [own, this.#all]) {
      held.requests += 1;
      held.bytes += bytes;
    }
    return () => {
      for (const held of [own, this.#all]) {
        held.requests -= 1;
        held.bytes -= bytes;
      }
      if (own.requests === 0) this.#byProject.delete(projectId);
    };
  }
}
