// Bounds the memory and the work of reading stored documents. An event can have 20 megabytes, a query thousands of places
// that read it, and each of them leaves a copy behind until the row is done. So the more places there are, the smaller
// is what each of them may read.
import type { Printer } from './printer.ts';
import { digits, join, type Sql, sql } from './sql.ts';
import type { Stored } from './types.ts';

/** Postgres compresses a document to this part of its bytes at best. */
const COMPRESSED = 256;
/** What the functions of Postgres leave behind at most, as multiples of a document's bytes. */
const LEFT_BY = {
  nothing: digits(COMPRESSED),
  text: digits(8 * COMPRESSED),
  binary: digits(64 * COMPRESSED),
};

/** Prints what a document takes on the disk. Its true size would cost a copy of it. */
const sizeOf = ({ root }: Stored): Sql => sql`pg_column_size(${root})`;
const stepsOf = ({ steps }: Stored): Sql => sql`array[${join(steps)}]::text[]`;

/** The step to a key, which is printed as a text. */
export const keyStep = (key: Sql): Sql => sql`('k' || ${key})`;
/** The step to an element, whose number is printed as for `->`. */
export const elementStep = (index: Sql): Sql => sql`('n' || ${index})`;

/** Prints a text that was found in a stored document. `text` is how it is found in a small one. */
export function textInside(printer: Printer, stored: Stored, text: Sql): Sql {
  const most = printer.sizes.document();
  return sql`(case when ${sizeOf(stored)} <= ${most} / ${LEFT_BY.text} then ${text} else hq.text_inside(${stored.root}, ${stepsOf(stored)}, ${most}) end)`;
}

/** Prints a stored document, or a part of it, as jsonb. `json` is how it is found in a small one. */
export function binaryInside(printer: Printer, stored: Stored, json: Sql): Sql {
  const most = printer.sizes.document();
  return sql`(case when ${sizeOf(stored)} <= ${most} / ${LEFT_BY.binary} then (${json})::jsonb else hq.binary_inside(${stored.root}, ${stepsOf(stored)}, ${most}) end)`;
}

/** Prints a stored document as it is. */
export function wholeDocument(printer: Printer, stored: Stored, json: Sql): Sql {
  const most = printer.sizes.document();
  return sql`(case when ${sizeOf(stored)} <= ${most} / ${LEFT_BY.nothing} then ${json} else hq.whole_document(${json}, ${most}) end)`;
}

/** Prints a stored text that can be as large as a document. */
export function wholeText(printer: Printer, text: Sql): Sql {
  const most = printer.sizes.document();
  return sql`(case when octet_length(${text}) <= ${most} then ${text} else hq.whole_text(${text}, ${most}) end)`;
}
