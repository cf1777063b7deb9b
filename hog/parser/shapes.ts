import { LRUCache } from 'lru-cache';
import type { Engine } from './engine.ts';
import { isRaw, type RawNode } from './reader.ts';
import { tokenize } from './tokens.ts';

/** What stands for each text in a shape. */
const MARK = '?';
const QUOTED_MARK = `'${MARK}'`;
/** The part of a text in quotes whose value is what is written. */
const PLAIN = /^'[^'\\]*'$/;
/** A text behind one of these is no value of the tree. */
const BEFORE_OTHERS: ReadonlySet<string> = new Set(['as', 'interval', 'date', 'timestamp']);

/** How many shapes a parser keeps, and how many characters of them. */
const MOST_SHAPES = 1_000;
const MOST_CHARACTERS = 2_000_000;

/** A text in quotes that was taken out of a source. Offsets are in code points, as the parser counts. */
interface Taken {
  value: string;
  /** Where its mark begins in the shape. */
  at: number;
  /** How much longer the source is than the shape, up to its end. */
  longer: number;
}

/** A source with a mark in the place of each text in quotes. */
interface Shape {
  text: string;
  taken: Taken[];
}

/**
 * Makes an engine that parses queries which differ only in their texts in quotes once. A page that asks for another day each time
 * then waits for the parser the first time only. What the parser makes of a source is the same, places included.
 */
export function withShapes(engine: Engine): Engine {
  /** The parser's answers. Empty: the shape has a text that is no value, so that sources of this shape are parsed whole. */
  const known = new LRUCache<string, string>({
    max: MOST_SHAPES,
    maxSize: MOST_CHARACTERS,
    sizeCalculation: (answer, text) => text.length + answer.length,
  });
  return {
    ...engine,
    async parse(kind, sources, budget) {
      if (kind !== 'select' && kind !== 'expression') return engine.parse(kind, sources, budget);
      const shapes = sources.map(shapeOf);
      const keyOf = ({ text }: Shape) => `${kind}:${text}`;
      const unknown = new Map<string, Shape>();
      for (const shape of shapes) if (shape && !known.has(keyOf(shape))) unknown.set(keyOf(shape), shape);
      const answers = new Map<string, string>();
      if (unknown.size > 0) {
        const parsed = await engine.parse(
          kind,
          Array.from(unknown.values(), ({ text }) => text),
          budget,
        );
        for (const [index, [key, shape]] of [...unknown].entries()) {
          const answer = parsed[index] as string;
          answers.set(key, filled(answer, shape) === undefined ? '' : answer);
        }
        for (const [key, answer] of answers) known.set(key, answer);
      }
      const made = shapes.map((shape) => {
        const answer = shape && (answers.get(keyOf(shape)) ?? known.get(keyOf(shape)));
        return answer ? filled(answer, shape) : undefined;
      });
      const whole = sources.filter((_source, index) => made[index] === undefined);
      const rest = whole.length > 0 ? await engine.parse(kind, whole, budget) : [];
      const next = rest.values();
      return made.map((one) => one ?? (next.next().value as string));
    },
  };
}

/** Takes the texts in quotes out of a source. Undefined: it has none, or may be read differently from how it looks. */
function shapeOf(source: string): Shape | undefined {
  const tokens = source.includes("'") ? tokenize(source) : null;
  if (!tokens) return undefined;
  const taken: Taken[] = [];
  let text = '';
  let [end, points, longer] = [0, 0, 0];
  const take = (upTo: number) => {
    const part = source.slice(end, upTo);
    text += part;
    points += pointsOf(part);
    end = upTo;
  };
  for (const [index, token] of tokens.entries()) {
    const written = source.slice(token.start, token.end);
    if (token.kind !== 'value' || !PLAIN.test(written)) continue;
    if (BEFORE_OTHERS.has(tokens[index - 1]?.text ?? '')) continue;
    take(token.start);
    longer += pointsOf(written) - QUOTED_MARK.length;
    taken.push({ value: written.slice(1, -1), at: points, longer });
    text += QUOTED_MARK;
    points += QUOTED_MARK.length;
    end = token.end;
  }
  if (taken.length === 0) return undefined;
  take(source.length);
  return { text, taken };
}

const pointsOf = (text: string): number => {
  let points = text.length;
  // The second half of a pair counts for nothing.
  for (let at = 0; at < text.length; at += 1) if ((text.charCodeAt(at) & 0xfc00) === 0xdc00) points -= 1;
  return points;
};

/**
 * Puts the texts of a source where their marks stand in the answer to its shape, and moves all places. Undefined: the answer is an
 * error, or a mark stands for something that is no value of the tree, such as a name.
 */
function filled(answer: string, { taken }: Shape): string | undefined {
  const tree: unknown = JSON.parse(answer);
  if (!isRaw(tree)) return undefined;
  const values = new Map(taken.map(({ at, value }) => [at, value]));
  const found = new Set<number>();
  let isWhole = true;
  const fill = (node: RawNode): void => {
    if (node.node !== 'Constant' || node.value !== MARK) return;
    const at = node.start?.offset ?? -1;
    const value = values.get(at);
    if (value === undefined || node.end?.offset !== at + QUOTED_MARK.length) isWhole = false;
    node.value = value;
    found.add(at);
  };
  const walk = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    if (isRaw(value)) fill(value);
    for (const [key, inner] of Object.entries(value)) {
      if ((key === 'start' || key === 'end') && typeof inner?.offset === 'number') {
        inner.offset += longerBefore(taken, inner.offset);
      } else walk(inner);
    }
  };
  walk(tree);
  return isWhole && found.size === taken.length ? JSON.stringify(tree) : undefined;
}

/** How much longer a source is than its shape, before an offset of the shape. */
function longerBefore(taken: readonly Taken[], offset: number): number {
  let [low, high] = [0, taken.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((taken[middle] as Taken).at < offset) low = middle + 1;
    else high = middle;
  }
  return taken[low - 1]?.longer ?? 0;
}
