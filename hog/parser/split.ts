import { SourceError } from '../errors.ts';
import { type Token, tokenize } from './tokens.ts';

/**
 * A run of statements that can be read alone. The parser's time grows with what stands in the branches of an `if`,
 * again at every level, so statement blocks are read by themselves: in `text` a marker of the same length is in
 * their place.
 */
export interface Piece {
  /** Where it starts in the program. */
  start: number;
  /** As long as its part of the program. */
  text: string;
  /** About how much work it is. */
  weight: number;
  /** By their start in the program. */
  holes: ReadonlyMap<number, Hole>;
}

export interface Hole {
  start: number;
  end: number;
  /** `block`: `{…}`; `statement`: the `if` after an `else` */
  kind: 'block' | 'statement';
  /** What the marker is: an empty block, or a text as a statement. */
  marker: 'block' | 'text';
  pieces: Piece[];
}

/** Keywords that are never names: a statement starts here. */
const STARTS = new Set(['let', 'while', 'throw', 'fun', 'fn', 'try']);
/** Keywords that start a statement if they stand where an expression has ended. */
const MAYBE_STARTS = new Set(['if', 'for', 'return']);
const LOOPS_AND_IFS = new Set(['if', 'while', 'for']);

/**
 * Cuts a program where the grammar lets nothing but a new statement begin. Null if its text is not surely
 * understood. Statements that are wrong in themselves may be cut anywhere: their pieces do not parse either.
 */
export function splitProgram(source: string, maxDepth: number): Piece[] | null {
  const tokens = tokenize(source);
  return tokens && new Splitter(source, tokens, maxDepth).pieces(0, tokens.length, 0, source.length);
}

class Splitter {
  readonly #source: string;
  readonly #tokens: Token[];
  /** Where the range of statements that is being cut starts. */
  #first = 0;
  /** The last tokens of blocks that are branches of an `if`. */
  readonly #branches = new Set<number>();
  readonly #maxDepth: number;
  #depth = 0;

  constructor(source: string, tokens: Token[], maxDepth: number) {
    this.#source = source;
    this.#tokens = tokens;
    this.#maxDepth = maxDepth;
  }

  /** Tokens from `first` up to `end`, which are the text from `from` to `to`. */
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

  /** Whether a new statement starts here and nothing before can go on. */
  #isBorder(index: number): boolean {
    const { text } = this.#at(index) as Token;
    const before = this.#text(index - 1);
    if (text === 'let') return true;
    if (before === ';') return text !== 'else' && text !== ';';
    if (STARTS.has(text)) return before !== 'else' && !this.#closesHead(index - 1);
    return MAYBE_STARTS.has(text) && this.#endsExpression(index - 1);
  }

  /** `)` of `if (…)`: a statement follows that belongs to it. */
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

  /** A statement starts here for sure: `if` and `for` can be names too. */
  #starts(index: number): boolean {
    return index === this.#first || this.#isBorder(index) || this.#followsBranch(index - 1);
  }

  /** `else` after the block of an `if`. */
  #followsBranch(index: number): boolean {
    return this.#text(index) === 'else' && this.#branches.has(index - 1);
  }

  /** What comes after a block cannot take it as the start of an expression. */
  #mayFollow(index: number, end: number): boolean {
    const next = index < end ? this.#at(index) : undefined;
    if (!next || next.kind === 'word') return true;
    return (
      STARTS.has(next.text) || MAYBE_STARTS.has(next.text) || /^(?:;|else|catch|finally)$/.test(next.text)
    );
  }

  /** The block of a statement, if it surely is one. */
  #block(index: number, end: number): Hole | null {
    const { start, partner } = this.#at(index) as Token;
    const head = this.#head(index);
    // Too short for a marker to be worth anything.
    if (head === null || (this.#at(partner) as Token).end - start < 8) return null;
    if (!this.#mayFollow(partner + 1, end)) return null;
    const hole = this.#hole('block', index, partner, head === 'body');
    if (hole && head === 'if') this.#branches.add(partner);
    return hole;
  }

  /** Whose block this is; `body`: of something that can have nothing but a block. */
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

  /** The last token of the `if` after this `else`, if all its branches are blocks. */
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
    // A `;` after a text would become part of its statement.
    const marker = strict || this.#text(last + 1) === ';' ? 'block' : 'text';
    // A marker must not cut a character of two units in half.
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
    // Characters of two units stay: the parser counts them as one.
    return open + inner.replace(/[^\ud800-\udfff]/g, ' ') + close;
  }
}
