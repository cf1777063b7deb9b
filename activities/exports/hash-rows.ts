import { copyOut } from '../../db/copy-out.ts';
import type { Pool } from '../../db/pool.ts';
import { encodeRows } from '../../formats/encode-rows.ts';
import type { ModelQuery } from '../../models/index.ts';

/** A file that keeps nothing: the rows are read for their checksum. */
const NOWHERE = {
  write() {},
  async close() {},
  async abort() {},
};

/** How many rows a query has, and the checksum that a run over them has, whatever their order and the format. */
export async function hashRows(
  pool: Pool,
  query: ModelQuery,
  signal: AbortSignal,
): Promise<{ rows: number; hash: string }> {
  const source = copyOut(pool, query.text, { settings: query.settings, signal });
  const { rows, rejected, hash } = await encodeRows(source, {
    columns: query.columns,
    format: 'JSONLines',
    compression: null,
    openFile: async () => NOWHERE,
    freeChunks: true,
    signal,
  });
  return { rows: rows + rejected, hash };
}
