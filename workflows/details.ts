import type { IntervalText } from '../intervals/index.ts';

const short = (instant: string) => instant.replace('.000Z', 'Z');

/** Shows an interval on the page of a workflow. */
export const rangeText = ({ start, end }: IntervalText): string =>
  `${start === null ? 'the beginning' : short(start)} – ${short(end)}`;

/** How many characters of a line the page of a workflow shows. It cuts off the rest. */
const WIDTH = 70;

function wrapped(line: string): string[] {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > WIDTH) {
    const space = rest.lastIndexOf(' ', WIDTH);
    const at = space > WIDTH / 2 ? space : WIDTH;
    lines.push(rest.slice(0, at));
    rest = rest.slice(at === space ? at + 1 : at);
  }
  return [...lines, rest];
}

/**
 * Shows a text of unknown origin on the page of a workflow: not as Markdown, and wrapped so that all of it is visible.
 */
export function fenced(text: string): string {
  const lines = text.replaceAll('~~~~~~', '~~~').split('\n').flatMap(wrapped);
  return `\n\n~~~~~~\n${lines.join('\n')}\n~~~~~~`;
}
