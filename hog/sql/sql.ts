// The only module that creates SQL text, from template literals in this project's source code. Nothing else can create
// a `Sql`, so text from a query, a filter or a document cannot become SQL.
import { SourceError } from '../errors.ts';

declare const MADE_HERE: unique symbol;

/** A piece of SQL. */
export interface Sql {
  readonly text: string;
  readonly [MADE_HERE]: true;
}

/** The longest text of a statement. A function that prints an argument several times can make it grow quickly. */
const MAX_TEXT = 4 * 1024 * 1024;

function make(text: string): Sql {
  if (text.length > MAX_TEXT) throw new SourceError('too_large', 'The query is too long for Postgres');
  return { text } as Sql;
}

/** Creates a piece of SQL, as in sql`coalesce(${a}, ${b})`. Only other pieces of SQL can be inserted. */
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

/** Creates a generated name such as `t1` or `c2`. Names of the source never become SQL names. */
export function numbered(prefix: 't' | 'c' | 'v' | 'w', number: number): Sql {
  if (!Number.isSafeInteger(number) || number < 0) throw new TypeError('a number is needed here');
  return make(`${prefix}${number}`);
}

/** Returns whether the SQL is one of the constants `true`, `false` and `null`. */
export const isConstant = ({ text }: Sql): boolean => /^(?:true|false|null)$/.test(text);

/** Prints an integer that the printer itself computed, such as a position. Not for literals of the source. */
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

/** A parameter value for Postgres: a text or a list of texts. */
export type ParameterValue = string | string[];

/** A parameter whose value is only known when the whole statement is printed. */
export interface LateParameter {
  sql: Sql;
  settle(value: ParameterValue): void;
}

/** The parameters of one statement. Equal values share a number, so that equal expressions have equal SQL. */
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

  /** Adds a parameter of its own, whose value is set later. */
  later(type: ParameterType): LateParameter {
    const number = this.#values.push('');
    return {
      sql: make(`$${number}::${type}`),
      settle: (value) => {
        this.#values[number - 1] = value;
      },
    };
  }

  /** Completes a statement. Keeps only the parameters that its text uses, and numbers them from 1. */
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
