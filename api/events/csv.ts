import type { FastifyReply, FastifyRequest } from 'fastify';
import { nextTurn } from '../../db/loop-turns.ts';
import { csvLine, withoutFormula } from '../../values/csv.ts';
import { inPieces, PIECE, sendPieces } from '../pieces.ts';

/** What a CSV may have: letters, and a separator for each cell. */
export const CSV_BYTES = 32 * 1024 * 1024;

/** The values of a record by their places in it, such as `properties.list.0`. */
type Cells = Map<string, string>;

/** Adds the values of a JSON value to cells. Null, and lists and objects without anything in them, have no cell. */
export function flatten(value: unknown, place: string, cells: Cells): Cells {
  if (value === null || value === undefined) return cells;
  if (typeof value !== 'object') return cells.set(place, String(value));
  for (const [key, one] of Object.entries(value)) flatten(one, place === '' ? key : `${place}.${key}`, cells);
  return cells;
}

/** A CSV whose columns are those of all its records. */
export interface Sheet {
  columns: string[];
  /** How many of the records are in it. The others have no room. */
  records: number;
}

/** Finds the columns of records, and how many of the records have room. A column has a cell in every line. */
export async function sheetOf<T>(records: readonly T[], cellsOf: (record: T) => Cells): Promise<Sheet> {
  const columns = new Set<string>();
  let [letters, since] = [0, 0];
  for (const [index, record] of records.entries()) {
    const cells = cellsOf(record);
    let size = 0;
    let fresh = 0;
    for (const [name, text] of cells) {
      size += text.length;
      if (!columns.has(name)) fresh += name.length + 1 + index;
    }
    // A first record is always shown.
    if (index > 0 && letters + size + fresh + columns.size > CSV_BYTES) {
      return { columns: [...columns].sort(), records: index };
    }
    for (const name of cells.keys()) columns.add(name);
    letters += size + fresh + columns.size;
    since += size;
    if (since < PIECE) continue;
    since = 0;
    await nextTurn();
  }
  return { columns: [...columns].sort(), records: records.length };
}

/** Writes records as CSV, piece by piece. Without any record there is nothing. */
export function sheetTexts<T>(
  { columns, records }: Sheet,
  all: readonly T[],
  cellsOf: (record: T) => Cells,
  { escapesFormulas }: { escapesFormulas: boolean },
): AsyncGenerator<string> {
  const shown = escapesFormulas ? withoutFormula : (text: string) => text;
  const head = records === 0 ? '' : csvLine(columns.map(shown));
  return inPieces(head, all.slice(0, records), (record) => {
    const cells = cellsOf(record);
    return csvLine(columns.map((name) => shown(cells.get(name) ?? '')));
  });
}

/** Whether the answer is a CSV. */
export const wantsCsv = ({ query, headers }: FastifyRequest): boolean =>
  ((query as { format?: string }).format ?? (headers.accept?.startsWith('text/csv') ? 'csv' : 'json')) ===
  'csv';

/** Answers with CSV. It has no place for the link to the next page, so a header has it. */
export function sendCsv(reply: FastifyReply, texts: AsyncGenerator<string>, next: string | null) {
  if (next !== null) reply.header('link', `<${next}>; rel="next"`);
  return sendPieces(reply.type('text/csv; charset=utf-8'), texts);
}
