// JSON whose numbers keep their spelling. `1.0` and `1` are different texts, and a double does not hold 9007199254740993.
import { isObject } from './json-object.ts';

declare global {
  interface JSON {
    /** Makes a value that is written as this text. */
    rawJSON(text: string): unknown;
  }
}

/** A number that a double does not spell as it was written. */
export class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toString(): string {
    return this.text;
  }

  valueOf(): number {
    return Number(this.text);
  }

  toJSON(): unknown {
    return JSON.rawJSON(this.text);
  }
}

/** Whether a value of such JSON is an object, and no number that keeps its spelling. */
export const isExactObject = (value: unknown): value is Record<string, unknown> =>
  isObject(value) && !(value instanceof ExactNumber);

/**
 * Finds texts that may hold such a number: with an exponent, a zero at the end of a fraction, many digits, or minus zero. A
 * number comes first in the text, or after one of these characters. The same inside a string only costs time.
 */
const MAY_BE_EXACT =
  /(?:^|[:[,\s])-?(?:\d+(?:\.\d+)?[eE]|\d+\.\d*0(?!\d)|\d{16}|\d+\.\d{15}|(?<=-)0(?![.\d]))/;

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;

const keep: Reviver = (_key, value, { source }) =>
  typeof value === 'number' && source !== undefined && String(value) !== source
    ? new ExactNumber(source)
    : value;

/** Parses JSON. Numbers that a double spells differently become an `ExactNumber`. */
export function parseExactJson(text: string): unknown {
  return MAY_BE_EXACT.test(text)
    ? JSON.parse(text, keep as (this: unknown, key: string, value: unknown) => unknown)
    : JSON.parse(text);
}
