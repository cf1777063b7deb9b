import { z } from 'zod';
import { CopyRows } from '../../formats/copy-rows.ts';
import { eventNames } from '../config.ts';
import type { RowsDestination } from '../destination.ts';

const noOpFields = z.object({
  arg: z.string().default('').describe('Has no effect.'),
  ...eventNames,
});

/** Reads all rows and keeps none. For tests. */
export const noOp: RowsDestination<z.output<typeof noOpFields>> = {
  kind: 'rows',
  types: ['NoOp'],
  fields: noOpFields,
  address: () => ({}),
  columns: 'files',
  takesQuery: true,
  takesOpenEnd: true,
  docs: { once: 'it stores nothing', address: [] },
  steps: [],
  async deliver(_config, _surroundings, delivery) {
    const reader = new CopyRows(delivery.columns.length);
    let rows = 0;
    let bytes = 0;
    for await (const chunk of delivery.read()) {
      delivery.signal?.throwIfAborted();
      bytes += chunk.length;
      reader.push(chunk);
      while (reader.next()) rows += 1;
      delivery.onProgress?.(rows, bytes);
    }
    reader.finish();
    await delivery.fence?.();
    return { rows, bytes, written: 0, rejected: 0, rejections: [] };
  },
};
