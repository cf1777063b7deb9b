import { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';
import { nextTurn } from '../db/loop-turns.ts';
import { SlowClientError } from './outlet.ts';

/** Letters of an answer that are written in one go. */
export const PIECE = 128 * 1024;

/** A text that is made of many, piece by piece. It may have many megabytes, so others have their turn between the pieces. */
export async function* inPieces<T>(
  head: string,
  items: readonly T[],
  textOf: (item: T, index: number) => string,
  end = '',
): AsyncGenerator<string> {
  let piece = head;
  for (const [index, item] of items.entries()) {
    piece += textOf(item, index);
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
    await nextTurn();
  }
  yield piece + end;
}

/** An answer that ends with a list, as JSON, piece by piece. `head` is what stands before the list, with its bracket. */
export const listInPieces = <T>(
  head: string,
  items: readonly T[],
  textOf: (item: T) => string,
): AsyncGenerator<string> =>
  inPieces(head, items, (item, index) => (index === 0 ? '' : ',') + textOf(item), ']}');

/** How long a client may take for a piece of its answer, in milliseconds. */
export const TAKE_MILLISECONDS = 30_000;

/**
 * Sends an answer in pieces, as fast as its client takes them. What is not sent stays in memory, so a client that takes no piece
 * for so long is cut off.
 */
export function sendPieces(
  reply: FastifyReply,
  pieces: AsyncIterable<string | Buffer>,
  patience = TAKE_MILLISECONDS,
): FastifyReply {
  const cutOff = () => {
    reply.raw.destroy(new SlowClientError(`The client took no piece in ${patience / 1000} seconds.`));
  };
  return reply.send(Readable.from(taken(pieces, patience, cutOff)) as never);
}

/** Passes pieces on. Where one is not taken for so long, `cutOff` is called. */
async function* taken<T>(
  pieces: AsyncIterable<T>,
  patience: number,
  cutOff: () => void,
): AsyncGenerator<T, void> {
  for await (const piece of pieces) {
    const late = setTimeout(cutOff, patience);
    try {
      yield piece;
    } finally {
      clearTimeout(late);
    }
  }
}
