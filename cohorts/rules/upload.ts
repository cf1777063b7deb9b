// Reads a file that lists persons: a table with a column of ids, as spreadsheets and other programs write it.
import { refuse } from '../../refusals.ts';

/** By what a file names persons. */
export type NamedBy = 'person_id' | 'distinct_id' | 'email';

export interface Upload {
  by: NamedBy;
  /** Each name once, in the order of the file. */
  names: Set<string>;
}

const HEADERS: Readonly<Record<string, NamedBy>> = {
  person_id: 'person_id',
  personid: 'person_id',
  uuid: 'person_id',
  person_uuid: 'person_id',
  distinct_id: 'distinct_id',
  distinctid: 'distinct_id',
  e_mail: 'email',
  email: 'email',
};
/** Which column counts if there are several. */
const ORDER: readonly NamedBy[] = ['person_id', 'distinct_id', 'email'];
const SEPARATORS = [',', ';', '\t'];

const MOST_COLUMNS = 1_000;

const wrong = (message: string) => refuse.invalid('csv', message);
const headerOf = (cell: string): NamedBy | undefined => {
  const name = cell
    .trim()
    .toLowerCase()
    .replace(/[\s.-]+/g, '_');
  return Object.hasOwn(HEADERS, name) ? HEADERS[name] : undefined;
};

/** Reads the cells of one row. Returns them, and where the next row begins. */
function rowAt(text: string, start: number, separator: string): { cells: string[]; next: number } {
  const cells: string[] = [];
  let at = start;
  let line = endOfLine(text, start);
  for (;;) {
    let cell: string;
    if (text[at] === '"') {
      let end = at + 1;
      for (;;) {
        end = text.indexOf('"', end);
        if (end < 0) throw wrong('The file ends within a quoted value.');
        if (text[end + 1] !== '"') break;
        end += 2;
      }
      cell = text.slice(at + 1, end).replaceAll('""', '"');
      at = end + 1;
    } else cell = '';
    if (line < at) line = endOfLine(text, at);
    const separated = text.slice(at, line).indexOf(separator);
    const end = separated < 0 ? line : at + separated;
    cells.push(cell + text.slice(at, end).replace(/\r$/, ''));
    if (cells.length > MOST_COLUMNS) throw wrong(`The file has more than ${MOST_COLUMNS} columns.`);
    if (separated < 0) return { cells, next: end + 1 };
    at = end + 1;
  }
}

const endOfLine = (text: string, from: number): number => {
  const end = text.indexOf('\n', from);
  return end < 0 ? text.length : end;
};

/** The separator that is in the first line most often. */
function separatorOf(text: string): string {
  const line = text.slice(0, text.indexOf('\n') < 0 ? undefined : text.indexOf('\n'));
  const counts = SEPARATORS.map((one) => line.split(one).length);
  return SEPARATORS[counts.indexOf(Math.max(...counts))] as string;
}

/** How many rows are read in one go. */
const ROWS_AT_ONCE = 500;

/**
 * Reads a file. With a single column, a header is not needed, and the values are distinct ids. A long file is read in pieces;
 * `rest` is asked after each of them, and waited for if it answers.
 */
export async function readUpload(
  file: string,
  mostNames: number,
  rest: () => Promise<void> | undefined = () => undefined,
): Promise<Upload> {
  const text = file.replace(/^\uFEFF/, '');
  const separator = separatorOf(text);
  const first = rowAt(text, 0, separator);
  const headers = first.cells.map(headerOf);
  const by = ORDER.find((one) => headers.includes(one));
  if (by === undefined && first.cells.length > 1) {
    throw wrong(
      `Multi-column CSV must contain at least one column with a supported ID header: 'person_id', 'distinct_id' or 'email'. Found columns: ${first.cells.join(', ').slice(0, 500)}`,
    );
  }
  const column = by === undefined ? 0 : headers.indexOf(by);
  const names = new Set<string>();
  let rows = 0;
  for (let at = by === undefined ? 0 : first.next; at < text.length; ) {
    const { cells, next } = rowAt(text, at, separator);
    at = next;
    rows += 1;
    if (rows % ROWS_AT_ONCE === 0) await rest();
    const name = (cells[column] ?? '').trim();
    if (name === '') continue;
    names.add(name);
    if (names.size > mostNames) throw wrong(`The file names more than ${mostNames} persons. Split it.`);
  }
  if (names.size === 0) {
    throw wrong(
      text.trim() === ''
        ? 'CSV file is empty. Please upload a CSV file with at least one row of data.'
        : 'CSV file contains no valid person IDs, distinct IDs, or email addresses. Please ensure your file has data rows with person IDs, distinct IDs, or email addresses.',
    );
  }
  return { by: by ?? 'distinct_id', names };
}
