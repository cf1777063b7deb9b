/** What an optional piece counts in addition: engines try texts both with it and without it. */
const OPTIONAL = 8;
/** What a word boundary counts. Postgres writes it as four searches. */
const BOUNDARY = 50;
/** What a class of most characters counts without case. Postgres lists their other cases. */
const WIDE_CLASS = 60;
/** A class has this many characters for one part more. */
const CLASS_CHARACTERS = 10;

export interface SizeOptions {
  /** True if the operator ignores case. A pattern can also say so itself. */
  insensitive?: boolean;
}

/** An open group: the size of what is complete in it, and the size of the last piece, which can still be repeated. */
interface Group {
  sum: number;
  last: number;
}

/**
 * Measures how much work a regular expression (RE2 syntax) is, before anything compiles it: its pieces, where a
 * repetition counts as often as it repeats, so that nested repetitions multiply. Reads the text once. The pattern need
 * not be valid.
 */
export function patternSize(pattern: string, { insensitive = false }: SizeOptions = {}): number {
  const wide = insensitive || /\(\?[A-Za-z]*i/.test(pattern) ? WIDE_CLASS : 0;
  const open: Group[] = [];
  let group: Group = { sum: 0, last: 0 };
  const piece = (size: number) => {
    group.sum += group.last;
    group.last = size;
  };
  for (let at = 0; at < pattern.length; at++) {
    const character = pattern[at] as string;
    switch (character) {
      case '(': {
        const head = groupHead(pattern, at);
        at += head.length;
        if (head.onlyFlags) {
          // Not a piece: a quantifier after it repeats the piece before it.
          group.sum++;
          break;
        }
        piece(1);
        open.push(group);
        group = { sum: 0, last: 0 };
        break;
      }
      case ')': {
        const inner = group.sum + group.last;
        const outer = open.pop();
        // Without an open group the pattern is invalid. What was read still counts.
        group = outer ?? { sum: inner, last: 0 };
        if (outer) group.last += inner;
        break;
      }
      case '[': {
        const length = classLength(pattern, at);
        const negated = pattern[at + 1] === '^' || /\\[DSWPp]/.test(pattern.slice(at, at + length));
        piece(1 + Math.floor(length / CLASS_CHARACTERS) + (negated ? wide : 0));
        at += length - 1;
        break;
      }
      case '\\': {
        const next = pattern[at + 1] ?? '';
        if (next === 'Q') {
          const end = pattern.indexOf('\\E', at + 2);
          const stop = end === -1 ? pattern.length : end;
          for (let quoted = at + 2; quoted < stop; quoted++) piece(1);
          at = end === -1 ? pattern.length : end + 1;
          break;
        }
        piece(next === 'b' || next === 'B' ? BOUNDARY : 1 + (/[DSWPp]/.test(next) ? wide : 0));
        at += escapeLength(pattern, at) - 1;
        break;
      }
      case '*':
      case '?':
        // After another quantifier, `?` only makes it lazy, but counting it twice does no harm.
        group.last += OPTIONAL;
        break;
      case '+':
        break;
      case '{': {
        const count = COUNT.exec(pattern.slice(at, at + 24));
        if (!count) {
          piece(1);
          break;
        }
        const least = Number(count[1]);
        const most = count[3] ? Number(count[3]) : least + (count[2] ? 1 : 0);
        group.last = group.last * Math.max(1, least, most) + (least === 0 ? OPTIONAL : 0);
        at += count[0].length - 1;
        break;
      }
      default:
        piece(1);
    }
  }
  let total = group.sum + group.last;
  for (const { sum, last } of open) total += sum + last;
  return total;
}

const COUNT = /^\{(\d{1,9})(,)?(\d{1,9})?\}/;

/** Returns the length of what follows a `(`: `?:`, flags or a name. Flags alone, as in `(?i)`, have no group: they end it. */
function groupHead(pattern: string, at: number): { length: number; onlyFlags: boolean } {
  if (pattern[at + 1] !== '?') return { length: 0, onlyFlags: false };
  const head = /^\?(?:P?<\w+>|[A-Za-z-]*[:)]?)/.exec(pattern.slice(at + 1, at + 80))?.[0] ?? '';
  return { length: head.length, onlyFlags: head.endsWith(')') };
}

/** Returns the length of a class in brackets. A `]` at its beginning belongs to it. */
function classLength(pattern: string, start: number): number {
  let at = start + 1;
  if (pattern[at] === '^') at++;
  for (let first = true; at < pattern.length; at++, first = false) {
    const character = pattern[at];
    if (character === ']' && !first) return at - start + 1;
    if (character === '\\') at++;
    else if (character === '[' && pattern[at + 1] === ':') {
      const end = pattern.indexOf(':]', at + 2);
      if (end !== -1 && /^\^?\w+$/.test(pattern.slice(at + 2, Math.min(end, at + 24)))) at = end + 1;
    }
  }
  return pattern.length - start;
}

/** Returns the length of an escape. The braces of `\x{…}` and `\p{…}` belong to it. */
function escapeLength(pattern: string, at: number): number {
  const braces = /^\\[xpP]\{[^}]{0,60}\}/.exec(pattern.slice(at, at + 64));
  return braces?.[0].length ?? 2;
}
