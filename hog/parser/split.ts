import { SourceError } from '../errors.ts';
import { type Token, tokenize } from './tokens.ts';

/**
 * A run of statements that can be parsed on its own. The parser's time multiplies with every nested `if`, so each
 * statement block becomes a piece of its own. In the outer text, a marker of the same length replaces the block.
 */
export interface Piece {
  /** The offset in the program. */
  start: number;
  /** The text for the parser. It has the same length as its part of the program. */
  text: string;
  /** The number of tokens, as an estimate of the work. */
  weight: number;
  /** The replaced blocks, by their offset in the program. */
  holes: ReadonlyMap<number, Hole>;
}

/** A part of a piece that is parsed separately. */
export interface Hole {
  start: number;
  end: number;
  /** `block` is a `{…}`; `statement` is the `if` after an `else`. */
  kind: 'block' | 'statement';
  /** The form of the marker: an empty block, or a string as a statement. */
  marker: 'block' | 'text';
  pieces: Piece[];
}

/** Keywords that are never names, so that a statement starts at each. */
const STARTS = new Set(['let', 'while', 'throw', 'fun', 'fn', 'try']);
/** Keywords that start a statement where an expression has just ended. Elsewhere they can be names. */
const MAYBE_STARTS = new Set(['if', 'for', 'return']);
const LOOPS_AND_IFS = new Set(['if', 'while', 'for']);

/**
 * Splits a program at the places where the grammar allows only a new statement. Returns null if the text is not fully
 * understood. Invalid statements may be split anywhere, because their pieces do not parse either.
 */
export function splitProgram(source: string, maxDepth: number): Piece[] | null {
  const tokens = tokenize(source);
  return tokens && new Splitter(source, tokens, maxDepth).pieces(0, tokens.length, 0, source.length);
}

class Splitter {
  readonly #source: string;
  readonly #tokens: Token[];
  /** The first token of the range that is being split. */
  #first = 0;
  /** The closing braces of blocks that are branches of an `if`, by token index. */
  readonly #branches = new Set<number>();
  readonly #maxDepth: number;
  #depth = 0;

  constructor(source: string, tokens: Token[], maxDepth: number) {
    this.#source = source;
    this.#tokens = tokens;
    this.#maxDepth = maxDepth;
  }

  /** Splits the tokens from `first` (included) to `end` (excluded). They cover the text from `from` to `to`. */
  pieces(first: number, end: number, from: number, to: number): Piece[] {
    const outer = this.#first;
    this.#first = first;
    const pieces: Piece[] = [];
    let start = from;
    let weight = 0;
    let holes: Hole[] = [];
    const cut = (at: number) => {
      pieces.push(this.#piece(start, at, weight, holes));
      [start, weight, holes] = [at, 0, []];
    };
    for (let i = first; i < end; i++) {
      const token = this.#at(i) as Token;
      if (i > first && this.#isBorder(i)) cut(token.start);
      weight++;
      const chain = token.text === 'else' ? this.#chain(i, end) : null;
      const hole = token.text === '{' ? this.#block(i, end) : chain && this.#hole('statement', i + 1, chain);
      if (hole) {
        holes.push(hole);
        i = chain ?? token.partner;
      } else if (token.partner > i) {
        weight += token.partner - i;
        i = token.partner;
      }
    }
    cut(to);
    this.#first = outer;
    return pieces;
  }

  #at(index: number): Token | undefined {
    return index < this.#first ? undefined : this.#tokens[index];
  }

  #text(index: number): string | undefined {
    return this.#at(index)?.text;
  }

  #piece(start: number, end: number, weight: number, holes: Hole[]): Piece {
    let text = '';
    let at = start;
    for (const hole of holes) {
      text += this.#source.slice(at, hole.start) + this.#marker(hole);
      at = hole.end;
    }
    text += this.#source.slice(at, end);
    return { start, text, weight, holes: new Map(holes.map((hole) => [hole.start, hole])) };
  }

  /** Returns whether a new statement starts here and the one before cannot continue. */
  #isBorder(index: number): boolean {
    const { text } = this.#at(index) as Token;
    const before = this.#text(index - 1);
    if (text === 'let') return true;
    if (before === ';') return text !== 'else' && text !== ';';
    if (STARTS.has(text)) return before !== 'else' && !this.#closesHead(index - 1);
    return MAYBE_STARTS.has(text) && this.#endsExpression(index - 1);
  }

  /** Returns whether this is the `)` of `if (…)`, `while (…)` or `for (…)`. The next statement then belongs to it. */
  #closesHead(index: number): boolean {
    const token = this.#at(index);
    return token?.text === ')' && LOOPS_AND_IFS.has(this.#text(token.partner - 1) ?? '');
  }

  #endsExpression(index: number): boolean {
    const token = this.#at(index);
    if (!token) return false;
    if (token.kind === 'word' || token.kind === 'value') return true;
    if (token.text === ')') return !this.#closesHead(index);
    return token.text === ']' || token.text === '}' || token.text === 'null';
  }

  /** Returns whether a statement certainly starts here. `if` and `for` can also be names. */
  #starts(index: number): boolean {
    return index === this.#first || this.#isBorder(index) || this.#followsBranch(index - 1);
  }

  /** Returns whether this is an `else` after the block of an `if`. */
  #followsBranch(index: number): boolean {
    return this.#text(index) === 'else' && this.#branches.has(index - 1);
  }

  /**
   * Returns whether the token can follow a block. It cannot if it would turn the block into the start of an expression.
   */
  #mayFollow(index: number, end: number): boolean {
    const next = index < end ? this.#at(index) : undefined;
    if (!next || next.kind === 'word') return true;
    return (
      STARTS.has(next.text) || MAYBE_STARTS.has(next.text) || /^(?:;|else|catch|finally)$/.test(next.text)
    );
  }

  /** Returns the hole for a block that starts here. Returns null if it may not be the block of a statement. */
  #block(index: number, end: number): Hole | null {
    const { start, partner } = this.#at(index) as Token;
    const head = this.#head(index);
    // Short blocks are not worth a marker.
    if (head === null || (this.#at(partner) as Token).end - start < 8) return null;
    if (!this.#mayFollow(partner + 1, end)) return null;
    const hole = this.#hole('block', index, partner, head === 'body');
    if (hole && head === 'if') this.#branches.add(partner);
    return hole;
  }

  /** Returns which statement the block belongs to. `body` means a construct that only allows a block. */
  #head(index: number): 'if' | 'loop' | 'body' | null {
    const before = this.#at(index - 1);
    if (before?.text === 'try' || before?.text === 'catch' || before?.text === 'finally') return 'body';
    if (this.#followsBranch(index - 1)) return 'if';
    if (before?.text !== ')') return null;
    const head = before.partner - 1;
    const word = this.#text(head);
    if (word === 'while') return 'loop';
    if (word === 'catch') return 'body';
    if (word === 'if' || word === 'for') return this.#starts(head) ? (word === 'if' ? 'if' : 'loop') : null;
    const keyword = this.#text(head - 1);
    return keyword === 'fun' || keyword === 'fn' ? 'body' : null;
  }

  /** Returns the last token of the `if` that follows this `else`, or null if not all of its branches are blocks. */
  #chain(index: number, end: number): number | null {
    if (!this.#followsBranch(index)) return null;
    let at = index + 1;
    for (;;) {
      const isIf = this.#text(at) === 'if' && this.#text(at + 1) === '(';
      const open = isIf ? (this.#at(at + 1) as Token).partner + 1 : at;
      const block = this.#at(open);
      if (block?.text !== '{' || block.partner >= end) return null;
      if (!isIf && at === index + 1) return null;
      if (isIf && this.#text(block.partner + 1) === 'else') at = block.partner + 2;
      else return this.#mayFollow(block.partner + 1, end) ? block.partner : null;
    }
  }

  #hole(kind: Hole['kind'], first: number, last: number, strict = false): Hole | null {
    const [open, close] = [this.#at(first) as Token, this.#at(last) as Token];
    // A `;` after a string would become part of the string's statement.
    const marker = strict || this.#text(last + 1) === ';' ? 'block' : 'text';
    // A marker must not split a surrogate pair.
    if (/[\ud800-\udbff]/.test(this.#source[open.start + 2] ?? '')) return null;
    if (/[\udc00-\udfff]/.test(this.#source[close.end - 3] ?? '')) return null;
    if (++this.#depth > this.#maxDepth) {
      const reason = `The source is nested more than ${this.#maxDepth} levels deep`;
      throw new SourceError('too_deep', reason, this.#source, open);
    }
    const pieces =
      kind === 'block'
        ? this.pieces(first + 1, last, open.end, close.start)
        : this.pieces(first, last + 1, open.start, close.end);
    this.#depth--;
    return { kind, marker, start: open.start, end: close.end, pieces };
  }

  #marker({ marker, start, end }: Hole): string {
    const [open, close] = marker === 'block' ? ['{/*', '*/}'] : ["'", "'"];
    const inner = this.#source.slice(start + open.length, end - close.length);
    // Surrogate pairs stay in the marker, because the parser counts each pair as one character.
    return open + inner.replace(/[^\ud800-\udfff]/g, ' ') + close;
  }
}
