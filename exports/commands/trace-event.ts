import { inTurn, isStatementTimeout, reading } from '../../db/reading.ts';
import { ModelError, namesOfModels, previewRows } from '../../models/index.ts';
import { exportQuery } from '../reads/query.ts';
import { type ExportOverEvent, exportsOverTime, type RunOverEvent } from '../rows/trace.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { reads } from './effort.ts';

/** An export whose runs have read the interval of an event. */
export interface ExportTrace {
  batch_export_id: string;
  name: string;
  destination: string;
  /** Whether the export, as it is now, takes the event. Null: that could not be found out in time. */
  takes_event: boolean | null;
  /** Completed runs whose interval contains the event. */
  runs: Omit<RunOverEvent, 'batch_export_id'>[];
}

const MOST_EXPORTS = 20;
const LONGEST = 5_000;
/** An interval around the event, in milliseconds. */
const AROUND = 1;

/** Finds the runs of exports that carried an event. */
export async function traceExports(
  deps: Pick<ExportCommandDependencies, 'reader' | 'compiler' | 'compiling' | 'pool'>,
  projectId: number,
  event: { uuid: string; inserted_at: string },
  signal?: AbortSignal,
): Promise<{ exports: ExportTrace[]; has_more_exports: boolean }> {
  const { pool } = deps;
  const models = namesOfModels((model) => model.isOfEvents);
  const found = await reading(pool, { projectId, signal }, (client) =>
    exportsOverTime(client, projectId, models, event.inserted_at, MOST_EXPORTS + 1),
  );
  const exports: ExportTrace[] = [];
  for (const one of found.slice(0, MOST_EXPORTS)) {
    exports.push({
      ...{ batch_export_id: one.id, name: one.name, destination: one.destination_type },
      takes_event: await takesEvent(deps, one, event, signal),
      runs: one.runs.map(({ batch_export_id: _id, ...run }) => run),
    });
  }
  return { exports, has_more_exports: found.length > MOST_EXPORTS };
}

async function takesEvent(
  deps: Pick<ExportCommandDependencies, 'reader' | 'compiler' | 'compiling'>,
  row: ExportOverEvent,
  { uuid, inserted_at }: { uuid: string; inserted_at: string },
  signal: AbortSignal | undefined,
): Promise<boolean | null> {
  const asker = { projectId: row.project_id, signal };
  const at = Date.parse(inserted_at);
  const interval = { start: at - AROUND, end: at + AROUND };
  const filters = withUuid(row.filters, uuid);
  try {
    const query = await reads(deps, asker, (compiler) =>
      exportQuery(compiler, { ...row, filters }, interval),
    );
    const { rows } = await inTurn(deps.reader, asker, () =>
      previewRows(deps.reader, query, 1, { timeoutMs: LONGEST, signal }),
    );
    return rows.length > 0;
  } catch (error) {
    if (isStatementTimeout(error) || error instanceof ModelError) return null;
    throw error;
  }
}

/** Adds the condition that only this event is taken. */
const withUuid = (filters: ExportOverEvent['filters'], uuid: string): ExportOverEvent['filters'] => [
  ...((filters as unknown[] | null) ?? []),
  { type: 'hogql', key: `toString(uuid) = '${uuid}'` },
];
