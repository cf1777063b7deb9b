import type { Engine } from './engine.ts';
import { isRaw, type RawNode } from './reader.ts';
import { type Token, tokenize } from './tokens.ts';

/** How deep calls nest in the texts that the parser gets, where the whole text has more. Its time multiplies with each level. */
const LEVELS = 2;
/** From so many levels on, calls are parsed on their own. */
const DEEP = 4;
/** Keywords that are also names of functions, whose arguments are ordinary expressions. */
const NAMES: ReadonlySet<string> = new Set(['if', 'left', 'right', 'replace', 'substring', 'trim']);

/** A call that is a whole argument of another call, and is parsed on its own. */
interface Piece {
  start: number;
  end: number;
  /** How many code points come before it, as the parser counts. */
  shift: number;
  /** The name that stands for the call in the text around it, and is as long as the call. */
  marker: string;
}

/** The texts to parse. The last one is what is around all others. */
interface Cut {
  pieces: Piece[];
  /** Each text has the length of its part of the source. */
  texts: string[];
}

/**
 * Makes an engine that parses deeply nested calls from the inside out. The parser tries every reading of every level at once, so
 * that ten calls in each other take it seconds. Where a text is wrong or odd, it is parsed whole, which yields the same error.
 */
export function withCalls(engine: Engine): Engine {
  return {
    ...engine,
    async parse(kind, sources, budget) {
      if (kind !== 'select' && kind !== 'expression') return engine.parse(kind, sources, budget);
      const answers: string[] = [];
      for (const source of sources) {
        const cut = cutCalls(source);
        const made = cut && (await putTogether(cut));
        answers.push(made ?? ((await engine.parse(kind, [source], budget))[0] as string));
      }
      return answers;

      async function putTogether({ pieces, texts }: Cut): Promise<string | undefined> {
        const inner = await engine.parse('expression', texts.slice(0, -1), budget);
        const [outer] = await engine.parse(kind, texts.slice(-1), budget);
        const trees = [...inner, outer as string].map((json) => JSON.parse(json) as unknown);
        if (!trees.every(isRaw)) return undefined;
        const found = new Map(pieces.map((piece, index) => [piece.marker, trees[index] as RawNode]));
        for (const [index, { shift }] of pieces.entries()) moveBy(trees[index] as RawNode, shift);
        for (const tree of trees) fill(tree, found);
        // A marker that is not where a call can be was not replaced.
        return found.size === 0 ? JSON.stringify(trees.at(-1)) : undefined;
      }
    },
  };
}

/** Finds the calls that are parsed on their own. Null: there is no need to, or the text is not fully understood. */
function cutCalls(source: string): Cut | null {
  const tokens = tokenize(source);
  if (!tokens) return null;
  const isName = (token: Token | undefined) =>
    token?.kind === 'word' || (token?.kind === 'keyword' && NAMES.has(token.text));
  /** How many levels of calls are open, and the most that there are. */
  const levels: boolean[] = [];
  let [open, most] = [0, 0];
  for (const [at, token] of tokens.entries()) {
    if (token.partner < 0) continue;
    if (token.partner > at) {
      levels.push(token.text === '(' && isName(tokens[at - 1]));
      if (levels.at(-1)) open += 1;
      most = Math.max(most, open);
    } else if (levels.pop()) open -= 1;
  }
  if (most < DEEP) return null;
  const pieces: Piece[] = [];
  const pointsBefore = counterOf(source);
  const taken: ReadonlySet<string> = new Set(source.match(LIKE_MARKERS));
  /** Cuts the calls within a range of tokens. Returns how many levels are left in it. */
  const cut = (from: number, to: number, isCall: boolean): number => {
    let height = 0;
    for (let at = from; at < to; at += 1) {
      const { partner, text } = tokens[at] as Token;
      if (partner <= at) continue;
      const isOfCall = text === '(' && isName(tokens[at - 1]);
      const inside = cut(at + 1, partner, isOfCall) + (isOfCall ? 1 : 0);
      const [before, after] = [tokens[at - 2]?.text, tokens[partner + 1]?.text];
      const isArgument =
        isCall && isOfCall && (before === '(' || before === ',') && (after === ')' || after === ',');
      if (isArgument && inside >= LEVELS) {
        const [start, end] = [(tokens[at - 1] as Token).start, (tokens[partner] as Token).end];
        const shift = pointsBefore(start);
        const marker = markerOf(pieces.length, pointsBefore(end) - shift);
        if (marker !== undefined && !taken.has(marker)) {
          pieces.push({ start, end, shift, marker });
          at = partner;
          continue;
        }
      }
      height = Math.max(height, inside);
      at = partner;
    }
    return height;
  };
  cut(0, tokens.length, false);
  if (pieces.length === 0) return null;
  // Pieces end in their order, so those within one come before it, and are the last that nobody has taken.
  const free: Piece[] = [];
  const texts = [...pieces, { start: 0, end: source.length, shift: 0, marker: '' }].map((piece) => {
    let first = free.length;
    while (first > 0 && (free[first - 1] as Piece).start >= piece.start) first -= 1;
    let text = '';
    let at = piece.start;
    for (const one of free.splice(first)) {
      text += source.slice(at, one.start) + one.marker;
      at = one.end;
    }
    free.push(piece);
    return text + source.slice(at, piece.end);
  });
  return { pieces, texts };
}

/** What a marker could be taken for. */
const LIKE_MARKERS = /_[0-9a-z]+_+/g;

/** A name of this length that differs from all others. Undefined: there is no room for it. */
function markerOf(index: number, length: number): string | undefined {
  const name = `_${index.toString(36)}_`;
  return name.length > length ? undefined : name.padEnd(length, '_');
}

/** Returns a function that counts the code points before an offset. */
function counterOf(source: string): (offset: number) => number {
  if (!/[\ud800-\udfff]/.test(source)) return (offset) => offset;
  const counts = new Uint32Array(source.length + 1);
  for (let at = 0; at < source.length; at += 1) {
    // The second half of a pair counts for nothing.
    const isSecond = (source.charCodeAt(at) & 0xfc00) === 0xdc00;
    counts[at + 1] = (counts[at] as number) + (isSecond ? 0 : 1);
  }
  return (offset) => counts[offset] as number;
}

function moveBy(value: unknown, by: number): void {
  if (Array.isArray(value)) for (const one of value) moveBy(one, by);
  else if (typeof value === 'object' && value !== null) {
    for (const [key, inner] of Object.entries(value)) {
      if ((key === 'start' || key === 'end') && typeof inner?.offset === 'number') inner.offset += by;
      else moveBy(inner, by);
    }
  }
}

/** Puts the calls where their markers stand, and takes them off the list. */
function fill(value: unknown, calls: Map<string, RawNode>): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const call = isRaw(inner) ? callOf(inner, calls) : undefined;
    if (call) (value as Record<string, unknown>)[key] = call;
    else fill(inner, calls);
  }
}

function callOf({ node, chain }: RawNode, calls: Map<string, RawNode>): RawNode | undefined {
  if (node !== 'Field' || !Array.isArray(chain) || chain.length !== 1) return undefined;
  const call = calls.get(chain[0] as string);
  calls.delete(chain[0] as string);
  return call;
}
