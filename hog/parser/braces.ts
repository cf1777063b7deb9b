import type { Engine } from './engine.ts';
import { escapedBraces, type SourceKind } from './scan.ts';

/** Characters for private use. One that a text does not contain can stand for something in it. */
const MARKS = Array.from({ length: 64 }, (_, i) => String.fromCharCode(0xe000 + i));

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
      return answers.map((answer, i) => {
        const mark = marked[i]?.mark;
        return mark === undefined ? answer : answer.replaceAll(mark, '');
      });
    },
  };
}

function markBraces(kind: SourceKind, source: string): { text: string; mark?: string } {
  const places = escapedBraces(source, kind);
  const mark = places.length > 0 ? MARKS.find((one) => !source.includes(one)) : undefined;
  if (mark === undefined) return { text: source };
  let text = '';
  let from = 0;
  for (const at of places) {
    text += `${source.slice(from, at)}}${mark}`;
    from = at + 2;
  }
  return { text: text + source.slice(from), mark };
}
