import type { IncomingMessage } from 'node:http';
import { ApiError, type ErrorBody, errors } from '../errors.ts';
import type { BodyPool } from './body-memory.ts';
import { Crowd, type Member } from './crowd.ts';
import type { Gate, Ticket } from './gate.ts';

/** A client that sends nothing for so long is given up. */
export const IDLE_MILLISECONDS = 30_000;
/** A client may announce any length; no more memory than this is set aside before the bytes arrive. */
const MOST_RESERVED = 1024 * 1024;
/** How often clients are checked within the idle time. */
const TURNS = 4;
const NOTHING = Buffer.alloc(0);

/** The largest body that a product takes, and the sentence that refuses a larger one. */
export interface LargestBody {
  bytes: number;
  refusal: string;
  /** The whole answer to a larger one, if its clients expect a form of their own. */
  answer?: object;
}

/** What reading bodies works with: the same for all routes of one product. */
export interface Reading {
  gate: Gate;
  bodies: BodyPool;
  watch: IdleWatch;
  largestBody: LargestBody;
}

type Done = (error: Error | null, body?: Buffer) => void;

/** The refusal of a body: 413 when it is too large, 400 when it is not what it claims to be. */
export function bodyRefusal(status: 400 | 413, detail: string): ApiError {
  if (status === 400) return errors.malformed(detail);
  return new ApiError(413, { type: 'invalid_request', code: 'request_too_large', detail, attr: null });
}

/** The refusal of a body that is larger than a product takes. */
const tooLong = ({ refusal, answer }: LargestBody): ApiError =>
  answer ? new ApiError(413, answer as ErrorBody) : bodyRefusal(413, refusal);

function timedOut(detail: string): ApiError {
  return new ApiError(
    408,
    { type: 'invalid_request', code: 'request_timeout', detail, attr: null },
    { connection: 'close' },
  );
}

const stalled = (seconds: number) =>
  timedOut(`client stopped sending data: nothing came for ${seconds} seconds`);
const tooSlow = () => timedOut('client sends too slowly while others wait for memory');

interface Reader extends Member {
  /** The watch's turn in which bytes came last. */
  turn: number;
  giveUp(): void;
}

/**
 * Finds clients that have stopped sending. One timer checks all of them: most bodies arrive so fast that a timer for
 * each would be wasted. A client is given up after the idle time, and a quarter of it later at most.
 */
export class IdleWatch {
  readonly milliseconds: number;
  turn = 0;
  readonly #readers = new Crowd<Reader>();
  #timer: NodeJS.Timeout | undefined;

  constructor(milliseconds: number) {
    this.milliseconds = milliseconds;
  }

  add(reader: Reader): void {
    this.#readers.add(reader);
    this.#timer ??= setInterval(() => this.#look(), this.milliseconds / TURNS).unref();
  }

  remove(reader: Reader): void {
    this.#readers.remove(reader);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    this.turn += 1;
    for (const reader of this.#readers.all()) if (this.turn - reader.turn > TURNS) reader.giveUp();
  }
}

/** Collects a body up to its limit, counts its bytes at the gate, and gives up on clients that stop sending. */
export function readBody(payload: IncomingMessage, ticket: Ticket, reading: Reading, done: Done): void {
  const { gate, bodies, watch, largestBody } = reading;
  const announced = Number(payload.headers['content-length'] ?? 0);
  if (announced > largestBody.bytes) {
    done(tooLong(largestBody));
    return;
  }
  const chunks: Buffer[] = [];
  /** A body of known length is copied here as it comes. Keeping its chunks would take the same memory again. */
  let whole: Buffer | undefined;
  let size = 0;
  let finished = false;
  const reader: Reader = {
    place: 0,
    turn: watch.turn,
    giveUp: () => finish(stalled(watch.milliseconds / 1000)),
  };

  function finish(error: Error | null): void {
    if (finished) return;
    finished = true;
    watch.remove(reader);
    gate.end(ticket);
    let body: Buffer = NOTHING;
    if (!error && whole) body = whole.subarray(0, size);
    else if (!error) body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size);
    // The request lives until its answer, for example until a commit. Its body must not.
    whole = undefined;
    chunks.length = 0;
    if (!error) {
      done(null, body);
      return;
    }
    gate.leave(ticket);
    done(error);
  }
  watch.add(reader);
  gate.begin(ticket, () => finish(tooSlow()));
  payload.on('data', (chunk: Buffer) => {
    if (finished) return;
    const at = size;
    size += chunk.length;
    try {
      if (size > largestBody.bytes) throw tooLong(largestBody);
      gate.hold(ticket, chunk.length);
    } catch (error) {
      finish(error as Error);
      return;
    }
    reader.turn = watch.turn;
    if (at === 0 && chunk.length < announced && announced <= MOST_RESERVED) {
      whole = bodies.take(announced);
    }
    if (whole && size <= whole.length) whole.set(chunk, at);
    else if (whole) finish(errors.malformed('The body is longer than its Content-Length.'));
    else chunks.push(chunk);
  });
  payload.on('end', () => finish(null));
  // Nobody reads this answer, because the connection is gone. The request has to end all the same.
  const broken = () => {
    if (!finished) finish(errors.malformed('The connection broke before the whole body was there.'));
  };
  payload.on('error', broken);
  payload.on('close', broken);
}
