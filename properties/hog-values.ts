// Compares and prints plain values as Hog does, including type conversions. Null and missing values are handled
// elsewhere.

/** Converts a value to a number as JavaScript does: '' is 0, true is 1, [5] is 5, 'x' is NaN. */
export const readsAs = (value: unknown): number => Number(Array.isArray(value) ? String(value) : value);

export function looseEquals(left: unknown, right: unknown): boolean {
  const [one, other] = unified(left, right);
  return one === other;
}

export type Order = '<' | '<=' | '>' | '>=';

export function inOrder(left: unknown, op: Order, right: unknown): boolean {
  const [one, other] = unified(left, right) as [number, number];
  if (op === '<') return one < other;
  if (op === '<=') return one <= other;
  return op === '>' ? one > other : one >= other;
}

/** Converts two values of different types to the types in which they are compared. */
function unified(left: unknown, right: unknown): [unknown, unknown] {
  const types = `${typeof left} ${typeof right}`;
  switch (types) {
    case 'number string':
    case 'string number':
      return [Number(left), Number(right)];
    case 'boolean string':
      return [left, right === 'true'];
    case 'string boolean':
      return [left === 'true', right];
    case 'boolean number':
    case 'number boolean':
      return [Number(left), Number(right)];
    default:
      return [left, right];
  }
}

/** Prints a value as `toString` does: a plain text at the top level, `['a', 1]` and `{'k': 'v'}` inside. */
export const printed = (value: unknown): string => (typeof value === 'string' ? value : printedInside(value));

function printedInside(value: unknown): string {
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(printedInside).join(', ')}]`;
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([key, one]) => `${quoted(key)}: ${printedInside(one)}`);
    return `{${entries.join(', ')}}`;
  }
  return String(value ?? null);
}

const ESCAPES: Readonly<Record<string, string>> = {
  '\b': '\\b',
  '\f': '\\f',
  '\r': '\\r',
  '\n': '\\n',
  '\t': '\\t',
  '\0': '\\0',
  '\v': '\\v',
  '\\': '\\\\',
  "'": "\\'",
};

const quoted = (text: string): string =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are the characters to escape
  `'${text.replace(/[\u0000\b\t\n\v\f\r'\\]/g, (character) => ESCAPES[character] as string)}'`;
