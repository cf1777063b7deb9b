export type Row = Record<string, unknown>;

/** The fields of one line of CSV; none of them has a line break. */
function fieldsOf(line: string): (string | null)[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map(([, quoted, plain]) =>
    quoted !== undefined ? quoted.replaceAll('""', '"') : plain === '' ? null : (plain as string),
  );
}
const DOCUMENTS = new Set(['properties', 'urls']);
/** All texts, and null where there is nothing. */
export function fromCsv(text: string): Row[] {
  const [head, ...lines] = text.split('\r\n').filter((line) => line !== '');
  const names = fieldsOf(head as string);
  return lines.map((line) =>
    Object.fromEntries(fieldsOf(line).map((value, index) => [names[index], value] as [string, unknown])),
  );
}
/** A row as CSV has it. */
export const asText = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      if (value === null) return [name, null];
      return [name, DOCUMENTS.has(name) ? JSON.stringify(value) : String(value)];
    }),
  );
export const byKey = (rows: Row[]) =>
  rows.sort((a, b) => (`${a.session_id ?? a.distinct_id}` < `${b.session_id ?? b.distinct_id}` ? -1 : 1));

/** Documents are texts in some formats, whose blanks are nobody's business. */
export const withParsed = (row: Row): Row =>
  typeof row.properties === 'string' ? { ...row, properties: JSON.parse(row.properties) } : row;
