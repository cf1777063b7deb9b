import type { FastifyRequest } from 'fastify';
import { transaction } from '../../db/pool.ts';
import type { BackfillRow } from '../../exports/rows/backfills.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { RunRow } from '../../exports/rows/runs.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { intervalEndingAt, type OpenInterval } from '../../intervals/index.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { beginBackfill } from './backfills.ts';
import { follow } from './follow.ts';

const refused = (detail: string) => errors.validation('invalid_input', detail, null);

/** The interval of a run, which a backfill can fill as long as the export still cuts time this way. */
function intervalOf(row: BatchExportRow, run: RunRow): OpenInterval {
  const end = Date.parse(run.data_interval_end);
  const start = run.data_interval_start === null ? null : Date.parse(run.data_interval_start);
  if (start !== null && intervalEndingAt(cadenceOfRow(row), end)?.start !== start) {
    throw refused(
      "The interval of this run is not one of the batch export's intervals. Create a backfill of the whole range instead.",
    );
  }
  return { start, end };
}

/** Exports the interval of a run that is over once more. */
export async function retryRun(
  { pool, schedules }: Pick<ApiDependencies, 'pool' | 'schedules'>,
  request: FastifyRequest,
  run: RunRow,
): Promise<BackfillRow> {
  const row = request.batchExport;
  if (run.status === 'Starting' || run.status === 'Running') {
    throw refused(`Cannot retry a run that is in '${run.status}' status`);
  }
  const range = intervalOf(row, run);
  const { backfill, isNew } = await transaction(pool, (client) => beginBackfill(client, request, row, range));
  if (isNew) {
    await follow({ schedules }, request, 'a retried run', () =>
      schedules.exports.startBackfill(row, backfill),
    );
  }
  return backfill;
}
