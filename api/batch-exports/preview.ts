import { inTurn, isStatementTimeout } from '../../db/reading.ts';
import { bindDestination } from '../../destinations/bind.ts';
import { findDestination } from '../../destinations/registry.ts';
import { type ExportQueryRow, exportQuery } from '../../exports/reads/query.ts';
import type { Interval } from '../../intervals/index.ts';
import { estimate, previewRows, queryFault } from '../../models/index.ts';
import { bounded } from '../bounded-query.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { refusalOf, refusing } from './refusals.ts';

const ROWS_MILLISECONDS = 10_000;
const ESTIMATE_MILLISECONDS = 5_000;
const ANY_MILLISECONDS = 2_000;
/** So many names are enough to see how files are called. */
const MOST_KEYS = 20;

type Dependencies = Pick<ApiDependencies, 'pool' | 'parser' | 'egress' | 'config'>;

export interface ExportPreview {
  columns: { name: string; type: string }[];
  rows: Record<string, unknown>[];
  estimate: { rows: number; exact: boolean; bytes: number };
  /** Null: the destination is given rows. */
  keys: string[] | null;
  manifest_key: string | null;
}

/** What an export would send for an interval. Nothing is written, and nobody is connected to. */
export async function previewExport(
  deps: Dependencies,
  row: ExportQueryRow,
  interval: Interval,
  limit: number,
): Promise<ExportPreview> {
  const { pool, parser } = deps;
  const query = await refusing(() => exportQuery(parser, row, interval));
  const advice = 'Choose a shorter interval, or filters that find more.';
  const run = <T>(work: () => Promise<T>) =>
    refusing(() =>
      bounded(inTurn(pool, work), advice).catch((error) => {
        throw queryFault(error, row);
      }),
    );
  const { columns, rows } = await run(() => previewRows(pool, query, limit, ROWS_MILLISECONDS));
  const size = await run(() => estimate(pool, query, ESTIMATE_MILLISECONDS));
  return {
    columns: query.columns.map(({ name, type }) => ({ name, type })),
    rows: rows.map((values) => Object.fromEntries(columns.map((name, at) => [name, values[at]]))),
    estimate: size,
    ...(await refusing(() => keysOf(deps, row, interval, size.bytes))),
  };
}

/** Whether there is anything to export in an interval; what cannot be told in time is taken for something. */
export async function hasRows(
  { pool, parser }: Pick<Dependencies, 'pool' | 'parser'>,
  row: ExportQueryRow,
  interval: Interval,
): Promise<boolean> {
  const query = await refusing(() => exportQuery(parser, row, interval));
  try {
    const { rows } = await inTurn(pool, () => previewRows(pool, query, 1, ANY_MILLISECONDS));
    return rows.length > 0;
  } catch (error) {
    if (isStatementTimeout(error)) return true;
    throw refusalOf(queryFault(error, row));
  }
}

/** The names of files, as many as there are about; a compressed file holds more than is known here. */
function keysOf(
  { egress, config }: Dependencies,
  row: ExportQueryRow,
  { start, end }: Interval,
  bytes: number,
): Pick<ExportPreview, 'keys' | 'manifest_key'> {
  const { destination_type: type } = row;
  if (findDestination(type)?.kind !== 'files') return { keys: null, manifest_key: null };
  const bound = bindDestination(
    { type, config: row.config },
    { egress, exportRoot: config.SLUICE_EXPORT_ROOT },
  );
  if (bound.kind !== 'files') return { keys: null, manifest_key: null };
  const keys = bound.keys({
    model: row.model,
    interval: { start: new Date(start), end: new Date(end) },
  });
  const { maxFileBytes, compression } = bound.options;
  const files = maxFileBytes && !compression ? Math.ceil(bytes / maxFileBytes) : 1;
  const shown = Math.min(Math.max(files, 1), MOST_KEYS);
  return {
    keys: Array.from({ length: shown }, (_, index) => keys.file(index)),
    manifest_key: keys.manifest,
  };
}
