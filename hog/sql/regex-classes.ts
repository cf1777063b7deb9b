// Prints characters and character classes of regular expressions as code points.

/** A feature of RE2 that has no equivalent in Postgres. */
export class Refused extends Error {
  readonly what: string;
  constructor(what: string) {
    super(what);
    this.what = what;
  }
}

/**
 * The character classes as ranges of code points. RE2's classes are ASCII only, those of Postgres depend on the
 * database's locale.
 */
export const CLASSES: Readonly<Record<string, [number, number][]>> = {
  d: [[48, 57]],
  w: [
    [48, 57],
    [65, 90],
    [95, 95],
    [97, 122],
  ],
  s: [
    [9, 10],
    [12, 13],
    [32, 32],
  ],
  alnum: [
    [48, 57],
    [65, 90],
    [97, 122],
  ],
  alpha: [
    [65, 90],
    [97, 122],
  ],
  ascii: [[1, 127]],
  blank: [
    [9, 9],
    [32, 32],
  ],
  cntrl: [
    [1, 31],
    [127, 127],
  ],
  digit: [[48, 57]],
  graph: [[33, 126]],
  lower: [[97, 122]],
  print: [[32, 126]],
  punct: [
    [33, 47],
    [58, 64],
    [91, 96],
    [123, 126],
  ],
  space: [
    [9, 13],
    [32, 32],
  ],
  upper: [[65, 90]],
  word: [
    [48, 57],
    [65, 90],
    [95, 95],
    [97, 122],
  ],
  xdigit: [
    [48, 57],
    [65, 70],
    [97, 102],
  ],
};

const MAX_CODE = 0x10ffff;

export function classOf(letter: string): string {
  const named = CLASSES[letter.toLowerCase()] as [number, number][];
  const ranges = letter === letter.toLowerCase() ? named : complement(named);
  return ranges.map(([low, high]) => range(low, high)).join('');
}

export function complement(ranges: [number, number][]): [number, number][] {
  const result: [number, number][] = [];
  let from = 1;
  for (const [low, high] of ranges) {
    if (low > from) result.push([from, low - 1]);
    from = high + 1;
  }
  result.push([from, MAX_CODE]);
  return result;
}

export const range = (low: number, high: number): string =>
  low === high ? coded(low) : `${coded(low)}-${coded(high)}`;

export function literal(code: number): string {
  const character = String.fromCodePoint(code);
  return /[A-Za-z0-9 _]/.test(character) ? character : coded(code);
}

/** Prints a character by its code point, so that it has no special meaning. Postgres has no character 0. */
export function coded(code: number): string {
  if (code === 0) throw new Refused('the character 0');
  if (code > 0x7f && code < 0x10000) return String.fromCodePoint(code);
  return code > 0xffff
    ? `\\U${code.toString(16).padStart(8, '0')}`
    : `\\u${code.toString(16).padStart(4, '0')}`;
}
