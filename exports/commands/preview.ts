import { transaction } from '../../db/pool.ts';
import { inTurn, isStatementTimeout } from '../../db/reading.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { bindDestination } from '../../destinations/bind.ts';
import { findDestination } from '../../destinations/registry.ts';
import { lastComplete, type OpenInterval } from '../../intervals/index.ts';
import { estimate, type ModelQuery, previewRows, queryFault } from '../../models/index.ts';
import { refuse } from '../../refusals.ts';
import { type ExportQueryRow, exportQuery } from '../reads/query.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import { cadenceOfRow } from '../rules/cadence.ts';
import { isOnce, onceRange } from '../rules/once.ts';
import { type IntervalChoice, pickInterval } from '../rules/pick-interval.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { reads } from './effort.ts';
import { type NewExportInput, prepareExport, refuseUnknownCohorts } from './prepare.ts';
import { refusing } from './refusals.ts';

const ROWS_MILLISECONDS = 10_000;
const ESTIMATE_MILLISECONDS = 5_000;
const ANY_MILLISECONDS = 2_000;
const RETRY_SECONDS = 5;
/** How many names of files a preview shows at most. */
const MOST_KEYS = 20;

type Dependencies = Pick<
  ExportCommandDependencies,
  'reader' | 'compiler' | 'compiling' | 'egress' | 'exportRoot'
>;

export interface ExportPreview {
  interval: OpenInterval;
  columns: { name: string; type: string }[];
  rows: Record<string, unknown>[];
  estimate: { rows: number; exact: boolean; bytes: number };
  /** The names of the files. Null: the destination takes rows instead. */
  keys: string[] | null;
  manifest_key: string | null;
}

/**
 * Shows what a new export would send for the last finished interval. Writes nothing and does not connect to the
 * destination.
 */
export async function previewNewExport(
  deps: Dependencies & Pick<ExportCommandDependencies, 'keyring' | 'pool' | 'knownCohorts'>,
  projectId: number,
  input: NewExportInput,
  limit: number,
  signal?: AbortSignal,
): Promise<ExportPreview> {
  const prepared = await prepareExport(deps, { projectId, exportId: uuidv7() }, input, signal);
  const { fields, cohorts } = prepared;
  if (cohorts.length > 0) {
    await transaction(deps.pool, (client) => refuseUnknownCohorts(deps, client, projectId, prepared));
  }
  const now = Date.now();
  const interval = isOnce(fields) ? { start: null, end: now } : lastComplete(cadenceOfRow(fields), now);
  return previewInterval(deps, { ...fields, project_id: projectId }, interval, limit, signal);
}

/**
 * Shows what an export would send for an interval. An interval that has not ended is shown up to now. Writes nothing
 * and does not connect to the destination.
 */
export async function previewExport(
  deps: Dependencies,
  row: BatchExportRow,
  choice: IntervalChoice,
  limit: number,
  signal?: AbortSignal,
): Promise<ExportPreview> {
  const isNamed = Boolean(choice.start_at || choice.end_at);
  const interval = isOnce(row) && !isNamed ? onceRange(row) : pickInterval(row, choice, Date.now());
  return previewInterval(deps, row, interval, limit, signal);
}

async function previewInterval(
  deps: Dependencies,
  row: ExportQueryRow,
  interval: OpenInterval,
  limit: number,
  signal: AbortSignal | undefined,
): Promise<ExportPreview> {
  const { reader } = deps;
  const asker = { projectId: row.project_id, signal };
  const query = await refusing(() => reads(deps, asker, (compiler) => exportQuery(compiler, row, interval)));
  const run = <T>(work: () => Promise<T>) =>
    refusing(() =>
      inTurn(reader, asker, work).catch((error) => {
        throw isStatementTimeout(error) ? tooSlow() : queryFault(error, row);
      }),
    );
  const { columns, rows } = await run(() =>
    previewRows(reader, query, limit, { timeoutMs: ROWS_MILLISECONDS, signal }),
  );
  const size = await run(() => estimate(reader, query, { timeoutMs: ESTIMATE_MILLISECONDS, signal }));
  return {
    interval,
    columns: query.columns.map(({ name, type }) => ({ name, type })),
    rows: rows.map((values) => Object.fromEntries(columns.map((name, at) => [name, values[at]]))),
    estimate: size,
    ...(await refusing(() => keysOf(deps, { ...row, model: query.model }, interval, size.bytes))),
  };
}

const tooSlow = () =>
  refuse.unavailable(
    'The query took too long. Choose a shorter interval, or filters that match more rows.',
    RETRY_SECONDS,
  );

/** Answers whether an interval has rows to export. If finding out takes too long, the answer is yes. */
export async function hasRows(
  deps: Pick<ExportCommandDependencies, 'reader' | 'compiler' | 'compiling'>,
  row: ExportQueryRow,
  interval: OpenInterval,
  signal?: AbortSignal,
): Promise<boolean> {
  const { reader } = deps;
  const asker = { projectId: row.project_id, signal };
  const query = await refusing(() => reads(deps, asker, (compiler) => exportQuery(compiler, row, interval)));
  return refusing(async () => {
    try {
      const { rows } = await inTurn(reader, asker, () =>
        previewRows(reader, query, 1, { timeoutMs: ANY_MILLISECONDS, signal }),
      );
      return rows.length > 0;
    } catch (error) {
      if (isStatementTimeout(error)) return true;
      throw queryFault(error, row);
    }
  });
}

/** Names the files that would be written. Their number is a guess, and compressed files count as one. */
function keysOf(
  { egress, exportRoot }: Dependencies,
  row: ExportQueryRow & Pick<ModelQuery, 'model'>,
  interval: OpenInterval,
  bytes: number,
): Pick<ExportPreview, 'keys' | 'manifest_key'> {
  const { destination_type: type } = row;
  if (findDestination(type)?.kind !== 'files') return { keys: null, manifest_key: null };
  const bound = bindDestination({ type, config: row.config }, { egress, exportRoot });
  if (bound.kind !== 'files') return { keys: null, manifest_key: null };
  const keys = bound.keys({ model: row.model, interval });
  const { maxFileBytes, compression } = bound.options;
  const files = maxFileBytes && !compression ? Math.ceil(bytes / maxFileBytes) : 1;
  const shown = Math.min(Math.max(files, 1), MOST_KEYS);
  return {
    keys: Array.from({ length: shown }, (_, index) => keys.file(index)),
    manifest_key: keys.manifest,
  };
}
