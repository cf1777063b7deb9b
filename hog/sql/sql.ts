// The only way SQL text comes into being here: literals of this project's source code, put together.
// Nothing else can make a `Sql`: text from a query, a filter or a name in a document has no way in.

declare const MADE_HERE: unique symbol;

/** A piece of SQL. */
export interface Sql {
  readonly text: string;
  readonly [MADE_HERE]: true;
}

const make = (text: string): Sql => ({ text }) as Sql;

/** sql`coalesce(${a}, ${b})`: the holes take pieces of SQL only. */
export function sql(strings: TemplateStringsArray, ...pieces: Sql[]): Sql {
  if (!Object.isFrozen(strings) || !Array.isArray(strings.raw)) throw new TypeError('sql is a template tag');
  let text = strings[0] as string;
  for (let i = 0; i < pieces.length; i++) text += (pieces[i] as Sql).text + strings[i + 1];
  return make(text);
}

export const NOTHING = sql``;
const COMMA = sql`, `;

export const join = (pieces: readonly Sql[], separator: Sql = COMMA): Sql =>
  make(pieces.map((piece) => piece.text).join(separator.text));

/** `t1`, `c2`: names that the printer gives; what the source calls things stays outside. */
export function numbered(prefix: 't' | 'c' | 'v' | 'w', number: number): Sql {
  if (!Number.isSafeInteger(number) || number < 0) throw new TypeError('a number is needed here');
  return make(`${prefix}${number}`);
}

/** Whether it is one of the three words that are constants by themselves. */
export const isConstant = ({ text }: Sql): boolean => /^(?:true|false|null)$/.test(text);

/** A whole number that the printer made itself (a position, a precision): not for literals of a source. */
export function digits(number: number): Sql {
  if (!Number.isSafeInteger(number)) throw new TypeError('a whole number is needed here');
  return make(String(number));
}

export type ParameterType =
  | 'text'
  | 'bigint'
  | 'float8'
  | 'numeric'
  | 'boolean'
  | 'uuid'
  | 'timestamp'
  | 'timestamptz'
  | 'date'
  | 'text[]'
  | 'bigint[]'
  | 'float8[]'
  | 'uuid[]';

/** What Postgres can take as a parameter: text, null, or a list of texts. */
export type ParameterValue = string | string[];

/** The values of one statement; equal ones share a number, so that equal expressions stay equal. */
export class Parameters {
  readonly #values: ParameterValue[] = [];
  readonly #numbers = new Map<string, number>();

  add(type: ParameterType, value: ParameterValue): Sql {
    const key = `${type} ${JSON.stringify(value)}`;
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#values.push(value);
      this.#numbers.set(key, number);
    }
    return make(`$${number}::${type}`);
  }

  /** A statement that is complete, with the parameters that its text still has, numbered from 1. */
  finish(statement: Sql): { text: string; values: ParameterValue[] } {
    const numbers = new Map<string, number>();
    const values: ParameterValue[] = [];
    const text = statement.text.replace(/\$(\d+)::/g, (_found, number: string) => {
      let renumbered = numbers.get(number);
      if (renumbered === undefined) {
        renumbered = values.push(this.#values[Number(number) - 1] as ParameterValue);
        numbers.set(number, renumbered);
      }
      return `$${renumbered}::`;
    });
    return { text, values };
  }
}
