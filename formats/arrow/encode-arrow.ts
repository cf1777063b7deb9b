import type { Column } from '../columns.ts';
import { CopyRows } from '../copy-rows.ts';
import { unlessAborted } from '../unless-aborted.ts';
import { valuesOf } from './column-values.ts';
import { batchMessage, END, padding, schemaMessage } from './messages.ts';

export interface ArrowOptions {
  columns: readonly Column[];
  /** Takes the bytes in order. When it is done, their memory is used again. */
  write(chunk: Buffer): Promise<void>;
  signal?: AbortSignal | undefined;
}

/** A batch ends when it has so many rows, or so many bytes as they came. */
const BATCH_ROWS = 65_536;
const BATCH_BYTES = 2 * 1024 * 1024;

/**
 * Writes the rows of a COPY in binary form as a stream of Arrow record batches. The use of memory does not depend on the number
 * of rows.
 */
export const encodeArrow = (source: AsyncIterable<Buffer>, options: ArrowOptions): Promise<void> =>
  unlessAborted(encode(source, options), options.signal);

async function encode(source: AsyncIterable<Buffer>, { columns, write }: ArrowOptions): Promise<void> {
  const rows = new CopyRows(columns.length);
  const values = columns.map(({ type }) => valuesOf(type));
  let count = 0;
  let bytes = 0;
  let isBegun = false;
  /** A reader of an empty stream, or of one that fails at once, gets the schema no sooner than that is known. */
  const begin = async () => {
    if (!isBegun) await write(schemaMessage(columns));
    isBegun = true;
  };
  const flush = async () => {
    await begin();
    if (count === 0) return;
    const nodes = values.flatMap((one) => one.nodes());
    const buffers = values.flatMap((one) => one.buffers());
    await write(batchMessage(count, nodes, buffers));
    for (const buffer of buffers) {
      if (buffer.length > 0) await write(buffer);
      const gap = padding(buffer.length);
      if (gap.length > 0) await write(gap);
    }
    for (const one of values) one.clear();
    count = 0;
    bytes = 0;
  };
  for await (const chunk of source) {
    rows.push(chunk);
    while (rows.next()) {
      values.forEach((one, index) => {
        const length = rows.fieldLength(index);
        const start = rows.fieldStart(index);
        if (length < 0) one.addNull();
        else one.add(rows.buffer, start, start + length);
      });
      count += 1;
      bytes += rows.end - rows.start;
      if (count >= BATCH_ROWS || bytes >= BATCH_BYTES) await flush();
    }
  }
  rows.finish();
  await flush();
  await write(END);
}
