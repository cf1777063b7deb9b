import { nextTurn } from '../db/loop-turns.ts';

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
