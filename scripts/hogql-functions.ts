// Generates the lists of functions in docs/hogql.md from the function tables of the SQL printer.
import { PATTERN_LIMITS } from '../hog/patterns/index.ts';
import {
  AGGREGATES,
  BOUNDED,
  FUNCTION_KINDS,
  QUERY_LIMITS,
  SIZE_LIMITS,
  WINDOW_FUNCTIONS,
  WORK_LIMITS,
} from '../hog/sql/index.ts';

const WIDTH = 118;

/** Joins names with spaces, in lines of the documentation's width. */
function wrapped(names: readonly string[]): string {
  const lines: string[] = [];
  for (const name of names) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + name.length < WIDTH) lines[lines.length - 1] = `${last} ${name}`;
    else lines.push(name);
  }
  return lines.join('\n');
}

/** Shortens `toInt8`, `toInt16`, … to `toInt8…256`. */
function shortened(names: readonly string[]): string[] {
  const sized = /^(to(?:U?Int|Float))(8|16|32|64|128|256)((?:Or\w+)?)$/;
  const seen = new Map<string, string[]>();
  for (const name of names) {
    const [, start, bits, end] = sized.exec(name) ?? [];
    const key = start === undefined ? name : `${start}…${end}`;
    const sizes = seen.get(key) ?? [];
    if (bits !== undefined) sizes.push(bits);
    seen.set(key, sizes);
  }
  return [...seen].map(([key, sizes]) =>
    sizes.length === 0
      ? key
      : key.replace('…', sizes.length === 1 ? (sizes[0] as string) : `${sizes[0]}…${sizes.at(-1)}`),
  );
}

export function functionLists(): string {
  const kinds: [string, readonly string[]][] = [
    ...Object.entries(FUNCTION_KINDS).map(([kind, table]): [string, string[]] => [kind, Object.keys(table)]),
    ['Aggregates, each also with the suffix `If`', Object.keys(AGGREGATES)],
    ['Window functions, in addition to the aggregates', Object.keys(WINDOW_FUNCTIONS)],
  ];
  return kinds
    .map(([kind, names]) => `${kind}:\n\n\`\`\`text\n${wrapped(shortened(names).toSorted())}\n\`\`\``)
    .join('\n\n');
}

const number = (value: number): string => value.toLocaleString('en-US');

/** Returns the table of the limits of queries and patterns. */
export function limitsTable(): string {
  const rows: [what: string, most: string][] = [
    ['parts of a query', number(QUERY_LIMITS.maxNodes)],
    ['depth of a query', number(QUERY_LIMITS.maxDepth)],
    ['characters of a text', number(QUERY_LIMITS.maxTextLength)],
    ['rows of an interactive query', number(QUERY_LIMITS.maxRows ?? 0)],
    ['places of a query that read events, where sessions count as four', number(QUERY_LIMITS.maxEventReads)],
    ['places of a query that read any table', number(QUERY_LIMITS.maxReads)],
    ['places that read events or sessions, in one join', number(QUERY_LIMITS.maxJoinedEvents)],
    ['places that read any table, in one join', number(QUERY_LIMITS.maxJoined)],
    ['characters of a pattern in a query', number(PATTERN_LIMITS.sqlCharacters)],
    ['characters of any other pattern', number(PATTERN_LIMITS.characters)],
    ['size of a pattern in a query', number(PATTERN_LIMITS.sqlSize)],
    ['size of any other pattern', number(PATTERN_LIMITS.size)],
    ['size of all patterns of a query, or of a document of filters', number(PATTERN_LIMITS.total)],
    ['bytes of a value that a query builds', number(SIZE_LIMITS.value)],
    ['bytes of all values that a query builds at the same time', number(SIZE_LIMITS.statement)],
    [
      'bytes of documents that a query reads for a row, counting each place that reads',
      number(SIZE_LIMITS.documents),
    ],
    ['places that read documents of any size', number(SIZE_LIMITS.fewReads)],
    ['steps of a search: the bytes of both texts, or of both lists, multiplied', number(WORK_LIMITS.search)],
    ['characters of a format of dates', number(WORK_LIMITS.format)],
  ];
  return ['| Limit | Most |', '|---|---|', ...rows.map(([what, most]) => `| ${what} | ${most} |`)].join('\n');
}

/** Lists the functions whose results are bounded. */
export const boundedList = (): string => `\`\`\`text\n${wrapped([...BOUNDED].toSorted())}\n\`\`\``;
