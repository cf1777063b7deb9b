import type { Engine } from './engine.ts';
import { escapedBraces, type SourceKind } from './scan.ts';

/**
 * A character that stands for the backslash. It has one byte, because the parser counts some places in bytes, and JSON
 * contains it as it is.
 */
const MARK = '\u007f';

/**
 * Makes an engine that reads `\\}` in template strings as a brace, as people write it beside `\\{`. The parser itself
 * fails on it. It gets a brace and a mark instead, so that all offsets stay the same, and the marks are taken out of its
 * answer.
 */
export function withBraces(engine: Engine): Engine {
  return {
    ...engine,
    async parse(kind, sources, budget) {
      const marked = sources.map((source) => markBraces(kind, source));
      const answers = await engine.parse(
        kind,
        marked.map(({ text }) => text),
        budget,
      );
      return answers.map((answer, i) => (marked[i]?.isMarked ? answer.replaceAll(MARK, '') : answer));
    },
  };
}

function markBraces(kind: SourceKind, source: string): { text: string; isMarked: boolean } {
  const places = source.includes(MARK) ? [] : escapedBraces(source, kind);
  let text = '';
  let from = 0;
  for (const at of places) {
    text += `${source.slice(from, at)}}${MARK}`;
    from = at + 2;
  }
  return { text: text + source.slice(from), isMarked: places.length > 0 };
}
