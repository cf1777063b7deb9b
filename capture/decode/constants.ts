import { endOfString } from './outline.ts';

/** Of a number, only where a value may stand. */
const CONSTANT = /(?<![\w.+-])(?:NaN|-?Infinity)(?![\w.+-])/g;

/**
 * JSON text with NaN, Infinity and -Infinity, which Python's encoder writes and JSON does not know, as texts: one of
 * them would cost the whole batch that it stands in. Undefined when there is none; what stands in strings stays.
 */
export function quoteConstants(text: string): string | undefined {
  if (!text.includes('NaN') && !text.includes('Infinity')) return undefined;
  const parts: string[] = [];
  let found = false;
  for (let from = 0; from < text.length; ) {
    const quote = text.indexOf('"', from);
    const until = quote === -1 ? text.length : quote;
    const plain = text.slice(from, until);
    const quoted = plain.replace(CONSTANT, '"$&"');
    found ||= quoted !== plain;
    from = quote === -1 ? until : Math.min(endOfString(text, quote + 1) + 1, text.length);
    parts.push(quoted, text.slice(until, from));
  }
  return found ? parts.join('') : undefined;
}
