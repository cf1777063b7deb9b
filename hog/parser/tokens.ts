/**
 * A token of the source. This lexer reads only what is needed to find the ends of statements. It gives up on any text
 * that it may read differently from the parser's lexer.
 */
export interface Token {
  /** `word` is a name that is not a keyword, `value` a literal or a quoted name, and `sign` anything else. */
  kind: 'word' | 'keyword' | 'value' | 'sign';
  /** The text of a keyword (in lower case) or a sign (such as `:=`). Empty for other tokens. */
  text: string;
  start: number;
  end: number;
  /** For a bracket, the token index of the matching one. Otherwise -1. */
  partner: number;
}

export const KEYWORDS: ReadonlySet<string> = new Set(
  `all and anti any array as asc ascending asof between both by case cast catch cohort collate columns cross cube
  current date day desc descending distinct else end except exclude extract final fill filter finally first fn
  following for from full fun group grouping having hour id if ilike ignore include in inf infinity inner
  intersect interpolate interval is join key lambda last leading left let like limit materialized minute month
  name natural nan not null nulls offset on or order outer over partition pivot positional preceding prewhere
  qualify quarter range recursive replace return right rollup row rows sample second select semi sets settings
  step substring then throw ties timestamp time local zone to top totals trailing trim truncate try try_cast
  unbounded union unpivot using values week when where while window with within year yyyy`.split(/\s+/),
);

const SPACE = /[ \t\r\n\v\f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]+/y;
const LINE_COMMENT = /(?:--|\/\/|#(?!\d))[^\n\r]*/y;
const NAME = /[A-Za-z_$][A-Za-z0-9_$]*/y;
const DIGITS = /[0-9]+/y;
const ESCAPE = String.raw`\\(?:[bfrntavBFRNTAV0\\]|[xX][0-9a-fA-F]{2})`;
const QUOTED: Record<string, RegExp> = {
  "'": new RegExp(String.raw`'(?:[^\\']|${ESCAPE}|\\'|'')*'`, 'y'),
  '"': new RegExp(String.raw`"(?:[^\\"]|${ESCAPE}|\\"|"")*"`, 'y'),
  '`': new RegExp(String.raw`\x60(?:[^\\\x60]|${ESCAPE}|\\'|\x60\x60)*\x60`, 'y'),
};
const TEMPLATE_TEXT = new RegExp(String.raw`(?:[^\\'{]|${ESCAPE}|\\'|\\[{}]|'')*`, 'y');
/** A `<` that may open or close a tag. Inside tags, other rules apply. */
const TAG = /<\/|<[A-Za-z_][A-Za-z0-9_-]*[\s/>#-]/y;
const SIGN = /:=|::|->|[()[\]{};,.:?=<>!~*/%+|-]/y;

const OPENING: Record<string, string> = { ')': '(', ']': '[', '}': '{' };

class Lexer {
  readonly tokens: Token[] = [];
  readonly #source: string;
  /** The open brackets and their token indexes. `f` is a `{` inside a template string. */
  readonly #open: { sign: string; token: number }[] = [];
  #holes = 0;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  /** Reads the whole source. Returns whether it could be read. */
  read(): boolean {
    while (this.#at < this.#source.length) if (!this.#next()) return false;
    return this.#open.length === 0;
  }

  #match(pattern: RegExp): number {
    pattern.lastIndex = this.#at;
    return pattern.exec(this.#source)?.[0].length ?? 0;
  }

  /** Adds a token. Tokens inside a template string are skipped, because they are part of the string. */
  #push(kind: Token['kind'], text: string, length: number): true {
    if (this.#holes === 0) {
      this.tokens.push({ kind, text, start: this.#at, end: this.#at + length, partner: -1 });
    }
    this.#at += length;
    return true;
  }

  #next(): boolean {
    const source = this.#source;
    const character = source[this.#at] as string;
    const skipped = this.#match(SPACE) || this.#match(LINE_COMMENT);
    if (skipped > 0) {
      this.#at += skipped;
      return true;
    }
    if (source.startsWith('/*', this.#at)) {
      const end = source.indexOf('*/', this.#at + 2);
      this.#at = end + 2;
      return end !== -1;
    }
    const quoted = QUOTED[character];
    if (quoted) {
      const length = this.#match(quoted);
      return length > 0 && this.#push('value', '', length);
    }
    if (/[fF]/.test(character) && source[this.#at + 1] === "'") {
      if (character === 'F') return false;
      this.#push('value', '', 2);
      return this.#template();
    }
    const name = this.#match(NAME);
    if (name > 0) {
      const word = source.slice(this.#at, this.#at + name).toLowerCase();
      return KEYWORDS.has(word) ? this.#push('keyword', word, name) : this.#push('word', '', name);
    }
    const digits = this.#match(DIGITS);
    return digits > 0 ? this.#push('value', '', digits) : this.#sign();
  }

  #sign(): boolean {
    const length = this.#match(SIGN);
    if (length === 0 || this.#match(TAG) > 0) return false;
    const sign = this.#source.slice(this.#at, this.#at + length);
    const token = this.tokens.length;
    if (sign === '(' || sign === '[' || sign === '{') this.#open.push({ sign, token });
    const opening = OPENING[sign];
    if (opening === undefined) return this.#push('sign', sign, length);
    const last = this.#open.pop();
    if (last?.sign === 'f' && sign === '}') {
      this.#holes--;
      this.#at++;
      return this.#template();
    }
    if (last?.sign !== opening) return false;
    this.#push('sign', sign, length);
    if (this.#holes === 0) {
      (this.tokens[token] as Token).partner = last.token;
      (this.tokens[last.token] as Token).partner = token;
    }
    return true;
  }

  /** Reads the text of a template string up to its next `{` or to its end. */
  #template(): boolean {
    this.#at += this.#match(TEMPLATE_TEXT);
    const sign = this.#source[this.#at++];
    if (sign === '{') {
      this.#open.push({ sign: 'f', token: -1 });
      this.#holes++;
      return true;
    }
    if (this.#holes === 0) (this.tokens.at(-1) as Token).end = this.#at;
    return sign === "'";
  }
}

/** Splits a source into tokens. Returns null if the parser might read the text differently. */
export function tokenize(source: string): Token[] | null {
  const lexer = new Lexer(source);
  return lexer.read() ? lexer.tokens : null;
}
