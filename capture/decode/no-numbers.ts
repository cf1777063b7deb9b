import { endOfString } from './outline.ts';

/** Where a value may stand, and as no part of anything else. */
const NO_NUMBER = /(?<![\w.+-])(?:NaN|-?Infinity)(?![\w.+-])/g;

/**
 * JSON text with null in place of NaN, Infinity and -Infinity, which JSON does not know and Python's encoder writes: one
 * of them would cost the whole batch that it stands in. Undefined when there is none; what stands in strings stays.
 */
export function withoutNoNumbers(text: string): string | undefined {
  if (!text.includes('NaN') && !text.includes('Infinity')) return undefined;
  const parts: string[] = [];
  let found = false;
  for (let from = 0; from < text.length; ) {
    const quote = text.indexOf('"', from);
    const until = quote === -1 ? text.length : quote;
    const before = text.slice(from, until);
    const after = before.replace(NO_NUMBER, 'null');
    found ||= after !== before;
    from = quote === -1 ? until : Math.min(endOfString(text, quote + 1) + 1, text.length);
    parts.push(after, text.slice(until, from));
  }
  return found ? parts.join('') : undefined;
}
