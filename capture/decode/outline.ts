import { nextTurn } from '../../db/loop-turns.ts';
import { MAX_DEPTH, MAX_VALUES } from './limits.ts';

/** What keeps a part of a JSON text from being parsed. */
export type Obstacle = 'too deep' | 'too many values';

/** How a part of a JSON text is built. */
export interface Shape {
  depth: number;
  /** About how many values it has, lists and objects included. */
  values: number;
}

export function obstacleOf({ depth, values }: Shape): Obstacle | undefined {
  if (depth > MAX_DEPTH) return 'too deep';
  return values > MAX_VALUES ? 'too many values' : undefined;
}

/** Where the events of a JSON text are, found without parsing it. */
export interface Outline {
  /** Where the list of events begins and ends, without its brackets. Undefined if the body is one event. */
  list: { start: number; end: number } | undefined;
  count: number;
  /** The start and end of an event, and what keeps it from being parsed. */
  element(index: number): [start: number, end: number, obstacle: Obstacle | undefined];
  /** The text outside the list. */
  rest: Shape;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const STEPS_PER_TURN = 1_000_000;

/** The index of the quote that ends the string whose first character is at `from`. */
export function endOfString(text: string, from: number): number {
  let end = text.indexOf('"', from);
  while (end !== -1) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH && end - 1 - backslashes >= from)
      backslashes += 1;
    if (backslashes % 2 === 0) return end;
    end = text.indexOf('"', end + 1);
  }
  return text.length;
}

const OBSTACLES = [undefined, 'too deep', 'too many values'] as const;

/** The offsets of any number of events, as three numbers each instead of an object each. */
class Offsets {
  #values = new Uint32Array(3 * 1024);
  count = 0;

  add(start: number, end: number, shape: Shape): void {
    if (this.count * 3 === this.#values.length) {
      const wider = new Uint32Array(this.#values.length * 2);
      wider.set(this.#values);
      this.#values = wider;
    }
    const place = this.count * 3;
    this.#values[place] = start;
    this.#values[place + 1] = end;
    const obstacle = obstacleOf(shape);
    this.#values[place + 2] = obstacle === undefined ? 0 : OBSTACLES.indexOf(obstacle);
    this.count += 1;
  }

  at(index: number): [number, number, Obstacle | undefined] {
    const place = index * 3;
    const [start, end] = [this.#values[place] as number, this.#values[place + 1] as number];
    return [start, end, OBSTACLES[this.#values[place + 2] as number]];
  }
}

/**
 * Reads the brackets of a JSON text: where the list of events is (the body itself, or its `batch`), where each event
 * begins and ends, how deep it nests. It checks nothing else; `JSON.parse` still parses each part.
 */
export async function outline(text: string): Promise<Outline> {
  let offsets = new Offsets();
  let list: Outline['list'];
  let listDepth = 0;
  let inList = false;
  let depth = 0;
  let [restDepth, restValues] = [0, 1];
  let elementStart = 0;
  let [elementDepth, elementValues] = [0, 1];
  let lastString = '';
  let key = '';
  let steps = 0;
  for (let index = 0; index < text.length; index += 1) {
    steps += 1;
    if (steps === STEPS_PER_TURN) {
      steps = 0;
      await nextTurn();
    }
    const code = text.charCodeAt(index);
    if (code === QUOTE) {
      const end = endOfString(text, index + 1);
      if (depth === 1 && !inList) lastString = text.slice(index + 1, Math.min(end, index + 9));
      index = end;
    } else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1;
      if (inList) {
        elementValues += 1;
        if (depth - listDepth > elementDepth) elementDepth = depth - listDepth;
      } else if (code === OPEN_LIST && (depth === 1 || (depth === 2 && key === 'batch'))) {
        // If a key comes twice, the last one counts, as for JSON.parse.
        offsets = new Offsets();
        inList = true;
        listDepth = depth;
        list = { start: index + 1, end: text.length };
        elementStart = index + 1;
        elementDepth = 0;
        elementValues = 1;
      } else {
        restValues += 1;
        if (depth > restDepth) restDepth = depth;
      }
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) {
      if (inList && depth === listDepth) {
        if (offsets.count > 0 || text.slice(elementStart, index).trim() !== '')
          offsets.add(elementStart, index, { depth: elementDepth, values: elementValues });
        list = { start: list?.start ?? 0, end: index };
        inList = false;
        key = '';
      }
      depth -= 1;
    } else if (code === COMMA) {
      if (inList && depth === listDepth) {
        offsets.add(elementStart, index, { depth: elementDepth, values: elementValues });
        elementStart = index + 1;
        elementDepth = 0;
        elementValues = 1;
      } else if (inList) elementValues += 1;
      else {
        restValues += 1;
        if (depth === 1) key = '';
      }
    } else if (code === COLON && depth === 1 && !inList) key = lastString;
  }
  const found = offsets;
  const rest = { depth: restDepth, values: restValues };
  return { list, count: found.count, element: (index) => found.at(index), rest };
}
