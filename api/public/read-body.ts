import type { IncomingMessage } from 'node:http';
import { MAX_BODY_BYTES } from '../../capture/decode/limits.ts';
import { ApiError, errors } from '../errors.ts';
import type { BodyPool } from './body-memory.ts';
import type { Gate, Ticket } from './gate.ts';

/** A client that sends nothing for so long is given up. */
export const IDLE_MILLISECONDS = 30_000;
/** More is not set aside for what a client only announced. */
const MOST_RESERVED = 1024 * 1024;
/** How often within that time clients are looked at. */
const TURNS = 4;
const NOTHING = Buffer.alloc(0);

type Done = (error: Error | null, body?: Buffer) => void;

function tooLarge(): ApiError {
  return new ApiError(413, {
    type: 'invalid_request',
    code: 'request_too_large',
    detail: `maximum event size exceeded: the body is larger than ${MAX_BODY_BYTES} bytes`,
    attr: null,
  });
}

function stalled(seconds: number): ApiError {
  return new ApiError(
    408,
    {
      type: 'invalid_request',
      code: 'request_timeout',
      detail: `client stopped sending data: nothing came for ${seconds} seconds`,
      attr: null,
    },
    { connection: 'close' },
  );
}

interface Reader {
  /** The watch's turn in which bytes came last. */
  turn: number;
  giveUp(): void;
}

/**
 * Finds the clients that stopped sending: one timer looks after all of them, as most bodies are there before a timer
 * of their own would have been worth its making. Gives up after the time, and a quarter of it at most.
 */
export class IdleWatch {
  readonly milliseconds: number;
  turn = 0;
  readonly #readers = new Set<Reader>();
  #timer: NodeJS.Timeout | undefined;

  constructor(milliseconds: number) {
    this.milliseconds = milliseconds;
  }

  add(reader: Reader): void {
    this.#readers.add(reader);
    this.#timer ??= setInterval(() => this.#look(), this.milliseconds / TURNS).unref();
  }

  remove(reader: Reader): void {
    this.#readers.delete(reader);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #look(): void {
    this.turn += 1;
    for (const reader of this.#readers) if (this.turn - reader.turn > TURNS) reader.giveUp();
  }
}

/** Collects a body up to the limit, counts what it takes, and gives up on clients that stop sending. */
export function readBody(
  payload: IncomingMessage,
  context: { gate: Gate; ticket: Ticket; watch: IdleWatch; bodies: BodyPool },
  done: Done,
): void {
  const { gate, ticket, watch, bodies } = context;
  const announced = Number(payload.headers['content-length'] ?? 0);
  if (announced > MAX_BODY_BYTES) {
    done(tooLarge());
    return;
  }
  const chunks: Buffer[] = [];
  /** Where a body of known length goes as it comes: chunks that are kept would be as much again. */
  let whole: Buffer | undefined;
  let size = 0;
  let finished = false;
  const reader: Reader = {
    turn: watch.turn,
    giveUp: () => finish(stalled(watch.milliseconds / 1000)),
  };

  function finish(error: Error | null): void {
    if (finished) return;
    finished = true;
    watch.remove(reader);
    let body: Buffer = NOTHING;
    if (!error && whole) body = whole.subarray(0, size);
    else if (!error) body = chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, size);
    // The request outlives its body by a commit.
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
  payload.on('data', (chunk: Buffer) => {
    if (finished) return;
    const at = size;
    size += chunk.length;
    try {
      if (size > MAX_BODY_BYTES) throw tooLarge();
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
  // Nobody reads the answer of a connection that is gone; the request ends all the same.
  const broken = () => {
    if (!finished) finish(errors.malformed('The connection broke before the whole body was there.'));
  };
  payload.on('error', broken);
  payload.on('close', broken);
}
