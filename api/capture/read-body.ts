import type { IncomingMessage } from 'node:http';
import { MAX_BODY_BYTES } from '../../capture/decode/limits.ts';
import { ApiError, errors } from '../errors.ts';
import type { Gate, Ticket } from './gate.ts';

/** A client that sends nothing for so long is given up. */
export const IDLE_MILLISECONDS = 30_000;
/** What a refused client still sends is thrown away up to here, so that it can read the answer. */
const MOST_DISCARDED = 64 * 1024 * 1024;

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

function discard(payload: IncomingMessage): void {
  let discarded = 0;
  payload.on('data', (chunk: Buffer) => {
    discarded += chunk.length;
    if (discarded > MOST_DISCARDED) payload.destroy();
  });
  payload.on('error', () => undefined);
  payload.resume();
}

/** Collects a body up to the limit, counts what it takes, and gives up on clients that stop sending. */
export function readBody(
  payload: IncomingMessage,
  context: { gate: Gate; ticket: Ticket; idle: number },
  done: Done,
): void {
  const announced = Number(payload.headers['content-length'] ?? 0);
  if (announced > MAX_BODY_BYTES) {
    discard(payload);
    done(tooLarge());
    return;
  }
  const chunks: Buffer[] = [];
  let size = 0;
  const timer = setTimeout(() => finish(stalled(context.idle / 1000)), context.idle);

  function finish(error: Error | null): void {
    clearTimeout(timer);
    payload.off('data', onData).off('end', onEnd).off('error', onError).off('close', onClose);
    if (error) {
      discard(payload);
      context.gate.leave(context.ticket);
      done(error);
      return;
    }
    done(null, chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, size));
  }
  function onData(chunk: Buffer): void {
    size += chunk.length;
    try {
      if (size > MAX_BODY_BYTES) throw tooLarge();
      context.gate.hold(context.ticket, chunk.length);
    } catch (error) {
      finish(error as Error);
      return;
    }
    chunks.push(chunk);
    timer.refresh();
  }
  const onEnd = () => finish(null);
  // Nobody reads the answer of a connection that is gone; the request ends all the same.
  const onError = () => finish(errors.malformed('The connection broke before the whole body was there.'));
  const onClose = onError;
  payload.on('data', onData).on('end', onEnd).on('error', onError).on('close', onClose);
}
