// Translates patterns from RE2 to Postgres. The two differ in classes, escapes, flags and anchors. Every piece of the
// pattern is parsed and printed anew. A piece that Postgres would read differently is refused.

import { CLASSES, classOf, complement, literal, Refused, range } from './regex-classes.ts';

/** RE2's word boundary, which only knows ASCII letters. That of Postgres knows letters of all languages. */
const WORD = '[0-9A-Za-z_]';
const WORD_EDGE = `(?:(?<!${WORD})(?=${WORD})|(?<=${WORD})(?!${WORD}))`;
const NO_WORD_EDGE = `(?:(?<!${WORD})(?!${WORD})|(?<=${WORD})(?=${WORD}))`;

type Translation = { pattern: string } | { refused: string };

const CONTROL: Readonly<Record<string, number>> = { n: 10, t: 9, r: 13, f: 12, v: 11, a: 7 };
/** The largest count in `{n,m}` that Postgres allows. */
const MAX_COUNT = 255;

export function translateRegex(pattern: string, insensitive: boolean, extracting: boolean): Translation {
  try {
    return { pattern: new Translator(pattern, extracting).run(insensitive) };
  } catch (error) {
    if (error instanceof Refused) return { refused: error.what };
    throw error;
  }
}

class Translator {
  readonly #source: string[];
  readonly #extracting: boolean;
  #at = 0;
  #greedy: boolean | null = null;

  constructor(pattern: string, extracting: boolean) {
    this.#source = [...pattern];
    this.#extracting = extracting;
  }

  run(insensitive: boolean): string {
    const flags = this.#leadingFlags();
    let body = '';
    while (this.#at < this.#source.length) body += this.#piece();
    // In ClickHouse, the dot also matches line breaks, unless the pattern says otherwise.
    const options = `${insensitive || flags.i ? 'i' : 'c'}${lineMode(flags.m, flags.s)}`;
    return `***:(?${options})(?:${body})`;
  }

  #leadingFlags(): { i: boolean; m: boolean; s: boolean } {
    const flags = { i: false, m: false, s: true };
    for (;;) {
      const match = /^\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?\)/.exec(
        this.#source.slice(this.#at, this.#at + 20).join(''),
      );
      if (!match) return flags;
      for (const letter of match[1] as string) setFlag(flags, letter, true);
      for (const letter of match[2] ?? '') setFlag(flags, letter, false);
      this.#at += match[0].length;
    }
  }

  #next(): string | undefined {
    return this.#source[this.#at++];
  }

  #piece(): string {
    const character = this.#next() as string;
    switch (character) {
      case '(':
        return this.#open();
      case ')':
        return ')';
      case '[':
        return this.#bracket();
      case '\\':
        return this.#escape();
      case '*':
      case '+':
      case '?':
        return character + this.#lazy();
      case '{':
        return this.#count();
      case '|':
      case '.':
        return character;
      case '^':
      case '$':
        return this.#anchor(character);
      default:
        return literal(character.codePointAt(0) as number);
    }
  }

  /**
   * Reads the `?` of a lazy quantifier. Postgres makes a whole expression either greedy or lazy, so a mix of both could
   * match other parts of the text.
   */
  #lazy(): string {
    const greedy = this.#source[this.#at] !== '?';
    if (!greedy) this.#at++;
    if (this.#extracting && this.#greedy !== null && this.#greedy !== greedy) {
      throw new Refused('a mix of lazy and greedy quantifiers when a part of the text is extracted');
    }
    this.#greedy = greedy;
    return greedy ? '' : '?';
  }

  /** Refuses a quantifier after an anchor, which Postgres cannot repeat. */
  #anchor(text: string): string {
    const next = this.#source[this.#at];
    if (next !== undefined && '*+?{'.includes(next)) throw new Refused('a repeated anchor');
    return text;
  }

  #count(): string {
    const rest = this.#source.slice(this.#at, this.#at + 16).join('');
    const match = /^(\d+)(?:(,)(\d*))?\}/.exec(rest);
    if (!match) return '\\{';
    if (Number(match[1]) > MAX_COUNT || Number(match[3] ?? 0) > MAX_COUNT) {
      throw new Refused(`counts above ${MAX_COUNT}`);
    }
    this.#at += match[0].length;
    return `{${match[0]}${this.#lazy()}`;
  }

  #open(): string {
    if (this.#source[this.#at] !== '?') return '(';
    const rest = this.#source.slice(this.#at, this.#at + 80).join('');
    const named = /^\?P?<\w+>/.exec(rest);
    if (named) {
      this.#at += named[0].length;
      return '(';
    }
    if (rest.startsWith('?:')) {
      this.#at += 2;
      return '(?:';
    }
    throw new Refused('flags that are not at the start');
  }

  #escape(): string {
    const character = this.#next() as string;
    if (CLASSES[character.toLowerCase()] && /[dws]/i.test(character)) return `[${classOf(character)}]`;
    switch (character) {
      case 'b':
        return this.#anchor(WORD_EDGE);
      case 'B':
        return this.#anchor(NO_WORD_EDGE);
      case 'A':
        return this.#anchor('\\A');
      case 'z':
        return this.#anchor('\\Z');
      case 'Q':
        return this.#quoted();
      case 'C':
        throw new Refused('\\C');
      case 'p':
      case 'P':
        throw new Refused('Unicode classes');
      default:
        return literal(this.#codeOf(character));
    }
  }

  #quoted(): string {
    let text = '';
    while (this.#at < this.#source.length) {
      if (this.#source[this.#at] === '\\' && this.#source[this.#at + 1] === 'E') {
        this.#at += 2;
        break;
      }
      text += literal((this.#next() as string).codePointAt(0) as number);
    }
    return text;
  }

  /** Returns the code point of an escape that stands for a single character. */
  #codeOf(character: string): number {
    const control = Object.hasOwn(CONTROL, character) ? CONTROL[character] : undefined;
    if (control !== undefined) return control;
    const rest = this.#source.slice(this.#at, this.#at + 12).join('');
    if (character === 'x') {
      const match = /^(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))/.exec(rest);
      if (!match) throw new Refused('an invalid \\x escape');
      this.#at += match[0].length;
      return Number.parseInt((match[1] ?? match[2]) as string, 16);
    }
    if (/[0-7]/.test(character)) {
      const digits = character + (/^[0-7]{0,2}/.exec(rest)?.[0] ?? '');
      this.#at += digits.length - 1;
      return Number.parseInt(digits, 8);
    }
    if (/[A-Za-z0-9]/.test(character)) throw new Refused(`\\${character}`);
    return character.codePointAt(0) as number;
  }

  #bracket(): string {
    const negated = this.#source[this.#at] === '^';
    if (negated) this.#at++;
    const ranges: [number, number][] = [];
    for (let first = true; ; first = false) {
      const character = this.#next();
      if (character === undefined) throw new Refused('an unclosed bracket');
      if (character === ']' && !first) break;
      ranges.push(...this.#member(character));
    }
    return `[${negated ? '^' : ''}${ranges.map(([low, high]) => range(low, high)).join('')}]`;
  }

  #member(character: string): [number, number][] {
    if (character === '[' && this.#source[this.#at] === ':') {
      const match = /^:(\^?)(\w+):\]/.exec(this.#source.slice(this.#at, this.#at + 16).join(''));
      const named =
        match && Object.hasOwn(CLASSES, match[2] as string) ? CLASSES[match[2] as string] : undefined;
      if (match && named) {
        this.#at += match[0].length;
        return match[1] === '^' ? complement(named) : named;
      }
    }
    if (character === '\\' && /[dws]/i.test(this.#source[this.#at] ?? '')) {
      const letter = this.#next() as string;
      const named = CLASSES[letter.toLowerCase()] as [number, number][];
      return letter === letter.toLowerCase() ? named : complement(named);
    }
    const low = this.#memberCode(character);
    if (this.#source[this.#at] !== '-' || this.#source[this.#at + 1] === ']') return [[low, low]];
    this.#at++;
    const high = this.#memberCode(this.#next() as string);
    return [[low, high]];
  }

  #memberCode(character: string): number {
    if (character !== '\\') return character.codePointAt(0) as number;
    const escaped = this.#next() as string;
    if (escaped === 'p' || escaped === 'P') throw new Refused('Unicode classes');
    return this.#codeOf(escaped);
  }
}

function setFlag(flags: { i: boolean; m: boolean; s: boolean }, letter: string, on: boolean): void {
  if (letter !== 'i' && letter !== 'm' && letter !== 's') throw new Refused(`the flag ${letter}`);
  flags[letter] = on;
}

/**
 * Returns the Postgres flag for two settings: whether `^` and `$` match at line breaks, and whether the dot matches
 * line breaks.
 */
const lineMode = (lines: boolean, dotAll: boolean): string =>
  lines ? (dotAll ? 'w' : 'n') : dotAll ? 's' : 'p';
