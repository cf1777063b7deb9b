// Where in its source each part of the code comes from. Bytecode has no room for that, so it is a table beside it. It is only
// made when somebody asks: the compiler then notes, for each piece of code that it makes, the place of its node.
import type { Span } from '../ast/index.ts';
import { placesOf } from '../errors.ts';
import type { Bytecode } from './operations.ts';

/**
 * Triples of numbers, in the order of the code: from which element of the code on, the line and the column. Lines and
 * columns count from 1, and are 0 where nothing is known.
 */
export type Places = readonly number[];

/** A piece of code, from one element to before another, and the offset in the source. */
type Piece = [from: number, to: number, offset: number];

/** The pieces of the code that is being compiled. Null: nobody asks. Those inside of others come before them. */
let pieces: WeakMap<Bytecode, Piece[]> | null = null;

/** Notes where the whole of some code comes from. */
export function placed(code: Bytecode, span: Span | undefined): Bytecode {
  if (!pieces || !span) return code;
  const known = pieces.get(code);
  const piece: Piece = [0, code.length, span.start];
  if (known) known.push(piece);
  else pieces.set(code, [piece]);
  return code;
}

/** Notes that code is about to be appended to other code. */
export function movePlaces(code: Bytecode, to: Bytecode): void {
  const moved = pieces?.get(code);
  if (!pieces || !moved) return;
  const known = pieces.get(to) ?? [];
  pieces.set(to, known);
  for (const [from, end, offset] of moved) known.push([from + to.length, end + to.length, offset]);
}

/** Calls a function that compiles, and returns where its code comes from. */
export function withPlaces(compile: () => Bytecode, source: string): { code: Bytecode; places: Places } {
  const outer = pieces;
  pieces = new WeakMap();
  try {
    const code = compile();
    return { code, places: tableOf(code.length, pieces.get(code) ?? [], source) };
  } finally {
    pieces = outer;
  }
}

function tableOf(length: number, all: readonly Piece[], source: string): Places {
  const offsets = new Int32Array(length).fill(-1);
  for (const [from, to, offset] of all) {
    for (let at = from; at < to; at++) if (offsets[at] === -1) offsets[at] = offset;
  }
  const table: number[] = [];
  const placeAt = placesOf(source);
  for (let at = 0; at < length; at++) {
    const offset = offsets[at] as number;
    if (at > 0 && offset === offsets[at - 1]) continue;
    const { line, column } = offset === -1 ? NOWHERE : placeAt(offset);
    table.push(at, line, column);
  }
  return table;
}

const NOWHERE = { line: 0, column: 0 };

/** Returns the place of an element of the code, if it is known. */
export function placeIn(places: Places, element: number): { line: number; column: number } | null {
  let [low, high] = [0, places.length / 3 - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((places[middle * 3] as number) <= element) low = middle;
    else high = middle - 1;
  }
  const [line = 0, column = 0] = places.slice(low * 3 + 1, low * 3 + 3);
  return line === 0 ? null : { line, column };
}
