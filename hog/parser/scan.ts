import { SourceError } from '../errors.ts';

export type SourceKind = 'program' | 'expression' | 'select' | 'template';

const OPENING = new Set(['(', '[', '{']);
const CLOSING = new Set([')', ']', '}']);

/**
 * Refuses a source whose brackets nest too deep, before the parser sees it. The parser's time grows steeply with the
 * depth. Brackets in strings and comments do not count; the `{}` inside template strings do.
 */
export function checkDepth(source: string, kind: SourceKind, maxDepth: number): void {
  let depth = 0;
  scan(source, kind, {
    open: (at) => {
      if (++depth > maxDepth) {
        throw new SourceError('too_deep', `Brackets are nested more than ${maxDepth} deep`, source, {
          start: at,
          end: at + 1,
        });
      }
    },
    close: () => {
      depth = Math.max(0, depth - 1);
    },
  });
}

/** Returns the offsets of `\\}` in the texts of template strings. */
export function escapedBraces(source: string, kind: SourceKind): number[] {
  const found: number[] = [];
  if (!source.includes('\\}')) return found;
  scan(source, kind, { backslash: (at) => source[at + 1] === '}' && found.push(at) });
  return found;
}

interface Visitor {
  /** A bracket opens or closes. The `}` that ends an expression in a template string counts too. */
  open?(at: number): void;
  close?(): void;
  /** A backslash in the text of a template string. */
  backslash?(at: number): void;
}

function scan(source: string, kind: SourceKind, { open, close, backslash }: Visitor): void {
  // The context of the current character: code, or the text of a template string. A template string ends with ' or with
  // the source.
  const stack: ('code' | 'template')[] = [kind === 'template' ? 'template' : 'code'];
  for (let i = 0; i < source.length; i++) {
    const character = source[i] as string;
    if (stack.at(-1) === 'template') {
      if (character === '\\') {
        backslash?.(i);
        i++;
      } else if (character === '{') {
        open?.(i);
        stack.push('code');
      } else if (character === "'" && stack.length > 1) stack.pop();
      continue;
    }
    const next = source[i + 1];
    if (character === "'") {
      const previous = source[i - 1];
      if ((previous === 'f' || previous === 'F') && !/[\w$]/.test(source[i - 2] ?? '')) {
        stack.push('template');
      } else i = skipString(source, i, "'");
    } else if (character === '"' || character === '`') i = skipString(source, i, character);
    else if (startsComment(character, next)) {
      while (i < source.length && source[i] !== '\n' && source[i] !== '\r') i++;
    } else if (character === '/' && next === '*') {
      const end = source.indexOf('*/', i + 2);
      if (end === -1) return;
      i = end + 1;
    } else if (OPENING.has(character)) {
      open?.(i);
      if (character === '{') stack.push('code');
    } else if (CLOSING.has(character)) {
      close?.();
      if (character === '}' && stack.length > 1) stack.pop();
    }
  }
}

/** Returns whether a line comment starts here. `#1` is not a comment but a column by its position. */
function startsComment(character: string, next: string | undefined): boolean {
  if (character === '#') return !/\d/.test(next ?? '');
  return (character === '/' || character === '-') && next === character;
}

/**
 * Returns the offset of the closing quote. A backslash escapes the next character. Two quotes in a row are one escaped
 * quote.
 */
function skipString(source: string, start: number, quote: string): number {
  for (let i = start + 1; i < source.length; i++) {
    if (source[i] === '\\') i++;
    else if (source[i] === quote) {
      if (source[i + 1] !== quote) return i;
      i++;
    }
  }
  return source.length;
}
