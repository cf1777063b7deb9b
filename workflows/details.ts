import type { IntervalText } from '../intervals/index.ts';

const short = (instant: string) => instant.replace('.000Z', 'Z');

/** An interval as the pages of workflows show it. */
export const rangeText = ({ start, end }: IntervalText): string =>
  `${start === null ? 'the beginning' : short(start)} – ${short(end)}`;

/** So many characters the page of a workflow shows side by side; it cuts off what is longer, also below. */
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

/** A text that others wrote, for the page of a workflow: it must not be read as Markdown, and all of it must be seen. */
export function fenced(text: string): string {
  const lines = text.replaceAll('~~~~~~', '~~~').split('\n').flatMap(wrapped);
  return `\n\n~~~~~~\n${lines.join('\n')}\n~~~~~~`;
}
