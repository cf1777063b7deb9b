import type { Queryable } from '../db/pool.ts';
import { type BackfillRow, findBackfillById } from '../exports/rows/backfills.ts';
import { type BatchExportRow, findBatchExportById, pageBatchExports } from '../exports/rows/batch-exports.ts';
import { findRunById } from '../exports/rows/run-lists.ts';
import type { RunRow } from '../exports/rows/runs.ts';
import { isUuid } from '../values/uuid.ts';
import { CommandError } from './context.ts';

const PAGE = 500;

/** All batch exports of the installation that are not deleted. */
export async function* allExports(queryable: Queryable): AsyncGenerator<BatchExportRow> {
  for (let after: string | null = null; ; ) {
    const rows: BatchExportRow[] = await pageBatchExports(queryable, after, PAGE);
    yield* rows;
    if (rows.length < PAGE) return;
    after = (rows.at(-1) as BatchExportRow).id;
  }
}

/** Finds the batch export that an operator names by its id or by its name. */
export async function findExport(queryable: Queryable, name: string): Promise<BatchExportRow> {
  if (isUuid(name)) {
    const row = await findBatchExportById(queryable, name);
    if (row && row.deleted_at === null) return row;
    throw new CommandError(
      `There is no batch export with the id ${name}; \`npx sluice exports\` lists them.`,
    );
  }
  const found: BatchExportRow[] = [];
  for await (const row of allExports(queryable)) if (row.name === name) found.push(row);
  if (found.length === 1) return found[0] as BatchExportRow;
  throw new CommandError(
    found.length === 0
      ? `There is no batch export called ${name}; \`npx sluice exports\` lists them.`
      : `Several batch exports are called ${name}; name one by its id: ${found.map((one) => one.id).join(', ')}`,
  );
}

/** Finds a run by its id, with its export. */
export async function findRunOfExport(
  queryable: Queryable,
  id: string,
): Promise<{ row: BatchExportRow; run: RunRow }> {
  const run = isUuid(id) ? await findRunById(queryable, id) : undefined;
  if (!run) throw new CommandError(`There is no run with the id ${id}.`);
  return { run, row: await findExport(queryable, run.batch_export_id) };
}

/** Finds a run or a backfill by its id, with its export. */
export async function findRunOrBackfill(
  queryable: Queryable,
  id: string,
): Promise<{ row: BatchExportRow } & ({ run: RunRow } | { backfill: BackfillRow })> {
  const run = isUuid(id) ? await findRunById(queryable, id) : undefined;
  if (run) return { run, row: await findExport(queryable, run.batch_export_id) };
  const backfill = isUuid(id) ? await findBackfillById(queryable, id) : undefined;
  if (backfill) return { backfill, row: await findExport(queryable, backfill.batch_export_id) };
  throw new CommandError(`There is no run or backfill with the id ${id}.`);
}
