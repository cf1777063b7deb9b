import { csvCell, withoutFormula } from '../values/csv.ts';
import { inert } from './inert.ts';

/** Rows with named columns. */
export interface Table {
  columns: string[];
  results: unknown[][];
}

/** The longest text that a column of a table shows. */
const WIDEST = 60;

const plain = (value: unknown): string =>
  value === null || value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);

/** A text in one line, cut if it is long. No letter of it moves the cursor or changes a color. */
function shown(value: unknown): string {
  const letters = [...inert(plain(value))];
  return letters.length > WIDEST ? `${letters.slice(0, WIDEST - 1).join('')}…` : letters.join('');
}

/** Writes rows for people: columns side by side, numbers to the right. */
export function tableLines({ columns, results }: Table): string[] {
  const cells = [columns, ...results].map((row) => columns.map((_, index) => shown(row[index])));
  const widths = columns.map((_, index) =>
    Math.max(...cells.map((row) => [...(row[index] as string)].length)),
  );
  const isNumeric = columns.map(
    (_, index) =>
      results.length > 0 && results.every((row) => row[index] === null || typeof row[index] === 'number'),
  );
  const line = (row: string[]) =>
    row
      .map((cell, index) => {
        const space = ' '.repeat((widths[index] as number) - [...cell].length);
        return isNumeric[index] ? space + cell : cell + space;
      })
      .join('  ')
      .trimEnd();
  const [head, ...rows] = cells.map(line) as [string, ...string[]];
  return [head, widths.map((width) => '-'.repeat(width)).join('  '), ...rows];
}

/**
 * Writes rows as CSV, as RFC 4180 has it, with the names of the columns first. With `isSheet`, no spreadsheet takes a text
 * for a formula.
 */
export function csvLines({ columns, results }: Table, isSheet = false): string[] {
  const cell = (value: unknown) =>
    csvCell(isSheet && typeof value === 'string' ? withoutFormula(value) : plain(value));
  return [columns, ...results].map((row) => `${row.map(cell).join(',')}\r`);
}
