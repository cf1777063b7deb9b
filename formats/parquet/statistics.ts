import type { ColumnType } from '../columns.ts';
import type { Kernel } from '../kernel/kernel.ts';
import { BOUND_ROOM, COLUMN } from '../kernel/layout.ts';

/** The least and the greatest value, as Parquet writes them. Bounds of long texts are shortened, and still bounds. */
export interface Bounds {
  least: Buffer;
  leastExact: boolean;
  greatest: Buffer | undefined;
  greatestExact: boolean;
}

const KEPT = 64;

/** Reads a column's bounds. Undefined if it had no values that can be compared, such as JSON documents. */
export function readBounds(kernel: Kernel, index: number, type: ColumnType): Bounds | undefined {
  if (type === 'json' || kernel.get(index, 'bounded') === 0) return undefined;
  if (type === 'string' || type === 'uuid' || type === 'strings') return textBounds(kernel, index);
  const width = type === 'int32' ? 4 : type === 'bool' ? 1 : 8;
  const at = kernel.columnAt(index);
  const read = (offset: number) => kernel.copy(at + offset, at + offset + width);
  const bounds = {
    least: read(COLUMN.minimum),
    leastExact: true,
    greatest: read(COLUMN.maximum),
    greatestExact: true,
  };
  if (type === 'float64') {
    // The least zero is the negative one, whichever zero came.
    if (bounds.least.readDoubleLE() === 0) bounds.least.writeDoubleLE(-0);
    if (bounds.greatest.readDoubleLE() === 0) bounds.greatest.writeDoubleLE(0);
  }
  return bounds;
}

function textBounds(kernel: Kernel, index: number): Bounds {
  const at = kernel.get(index, 'boundTexts');
  const least = kernel.copy(at, at + kernel.get(index, 'minimum'));
  const greatestAt = at + BOUND_ROOM;
  const greatest = kernel.copy(greatestAt, greatestAt + kernel.get(index, 'maximum'));
  const cut = kernel.get(index, 'cut') === 1;
  return {
    least: least.length < KEPT ? least : least.subarray(0, characterEnd(least)),
    leastExact: least.length < KEPT,
    greatest: cut ? successor(greatest) : greatest,
    greatestExact: !cut,
  };
}

/** Where the last whole character ends, in a text that may be cut within a character. */
function characterEnd(text: Buffer): number {
  let start = text.length - 1;
  while (start > 0 && ((text[start] as number) & 0xc0) === 0x80) start -= 1;
  const first = text[start] as number;
  const size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  return start + size === text.length ? text.length : start;
}

/** A text that is greater than all texts with this beginning. Undefined if there is no short one. */
function successor(text: Buffer): Buffer | undefined {
  const characters = [...text.subarray(0, characterEnd(text)).toString()];
  while (characters.length > 0) {
    const last = (characters.pop() as string).codePointAt(0) as number;
    if (last >= 0x10ffff) continue;
    const next = last + 1 >= 0xd800 && last + 1 <= 0xdfff ? 0xe000 : last + 1;
    return Buffer.from(characters.join('') + String.fromCodePoint(next));
  }
  return undefined;
}
