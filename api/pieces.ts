import { nextTurn } from '../db/loop-turns.ts';

/** Letters of an answer that are written in one go. */
export const PIECE = 128 * 1024;

/**
 * An answer that ends with a list, as JSON, piece by piece. `head` is what stands before the list, with its bracket. An answer may
 * have many megabytes, so others have their turn between the pieces.
 */
export async function* listInPieces<T>(
  head: string,
  items: readonly T[],
  textOf: (item: T) => string,
): AsyncGenerator<string> {
  let piece = head;
  for (const [index, item] of items.entries()) {
    piece += (index === 0 ? '' : ',') + textOf(item);
    if (piece.length < PIECE) continue;
    yield piece;
    piece = '';
    await nextTurn();
  }
  yield `${piece}]}`;
}
