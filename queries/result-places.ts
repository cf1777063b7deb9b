import { type Asker, type TurnOptions, Turns } from '../db/turns.ts';
import { refuse } from '../refusals.ts';

export interface ResultPlaceOptions extends TurnOptions {
  /** When others wait, a file goes on whose client takes so many bytes in a second. */
  leastBytes?: number;
  /** Milliseconds by which a client is judged. */
  window?: number;
  /** Milliseconds in which the first bytes are there, if others wait. */
  firstBytes?: number;
}

const LEAST_BYTES = 256 * 1024;
const WINDOW = 5_000;
const FIRST_BYTES = 60_000;
const RETRY_SECONDS = 30;

interface Mark {
  at: number;
  bytes: number;
}

/** A place at which a result is written as a file. */
class Place {
  readonly leaving = new AbortController();
  #bytes = 0;
  #mark: Mark = { at: performance.now(), bytes: 0 };
  #next = this.#mark;

  /** Counts what the client has taken. */
  took(bytes: number, window: number): void {
    this.#bytes += bytes;
    const now = performance.now();
    if (now - this.#next.at < window) return;
    this.#mark = this.#next;
    this.#next = { at: now, bytes: this.#bytes };
  }

  /** What the client takes in a second. Undefined: it has had too little time to tell. */
  speed(window: number, firstBytes: number): number | undefined {
    const passed = performance.now() - this.#mark.at;
    if (passed < (this.#bytes === 0 ? firstBytes : window)) return undefined;
    return ((this.#bytes - this.#mark.bytes) * 1000) / passed;
  }
}

/**
 * The places at which results are written as files. A client may take its file as slowly as it likes while there is room. When all
 * places are taken and another project waits, the slowest client gives its place up, if it is slow. Otherwise as many projects as
 * there are places could keep all others from reading.
 */
export class ResultPlaces {
  readonly #turns: Turns;
  readonly #most: number;
  readonly #leastBytes: number;
  readonly #window: number;
  readonly #firstBytes: number;
  readonly #taken = new Map<Place, number>();

  constructor({ leastBytes, window, firstBytes, ...turns }: ResultPlaceOptions) {
    this.#turns = new Turns(turns);
    this.#most = turns.atOnce;
    this.#leastBytes = leastBytes ?? LEAST_BYTES;
    this.#window = window ?? WINDOW;
    this.#firstBytes = firstBytes ?? FIRST_BYTES;
  }

  /**
   * Does the work when there is a place. The work tells what its client takes, and ends when the signal is aborted. Throws a
   * NoTurnError if there is no place.
   */
  async take(
    asker: Asker,
    work: (signal: AbortSignal, took: (bytes: number) => void) => Promise<void>,
  ): Promise<void> {
    const waiting = setInterval(() => this.#makeRoom(asker.projectId), this.#window / 5);
    try {
      await this.#turns.take(asker, async () => {
        clearInterval(waiting);
        const place = new Place();
        this.#taken.set(place, asker.projectId);
        try {
          await work(place.leaving.signal, (bytes) => place.took(bytes, this.#window));
        } finally {
          this.#taken.delete(place);
        }
      });
    } finally {
      clearInterval(waiting);
    }
  }

  /** Lets the slowest client leave for a project that has no place. */
  #makeRoom(projectId: number): void {
    const places = [...this.#taken];
    if (places.length < this.#most) return;
    if (places.some(([{ leaving }, owner]) => owner === projectId || leaving.signal.aborted)) return;
    const slow = places
      .map(([place]) => ({ place, speed: place.speed(this.#window, this.#firstBytes) }))
      .filter(
        (one): one is { place: Place; speed: number } => (one.speed ?? this.#leastBytes) < this.#leastBytes,
      )
      .sort((one, other) => one.speed - other.speed);
    slow[0]?.place.leaving.abort(
      refuse.unavailable(
        'Others wait for a place, and this file gets on slowly. Take it faster, or ask for less or in the background.',
        RETRY_SECONDS,
      ),
    );
  }
}
