// Cells and lines of CSV as RFC 4180 has them.

/** A text that a spreadsheet takes for a formula. */
const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Writes a cell, in quotes where it needs them. */
export const csvCell = (text: string): string =>
  /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;

/** Puts a quote mark before a text that a spreadsheet would run as a formula. Numbers stay as they are. */
export const withoutFormula = (text: string): string =>
  FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;

export const csvLine = (cells: readonly string[]): string => `${cells.map(csvCell).join(',')}\r\n`;
