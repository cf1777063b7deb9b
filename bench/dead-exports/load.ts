import { setTimeout as pause } from 'node:timers/promises';
import { type Pool, transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { sealSettings } from '../../exports/reads/settings.ts';
import { insertBackfill } from '../../exports/rows/backfills.ts';
import { type BatchExportRow, insertBatchExport } from '../../exports/rows/batch-exports.ts';
import { backfillWorkflowId } from '../../exports/rules/workflow-ids.ts';
import type { IntervalText } from '../../intervals/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { ExportStack } from '../export-stack.ts';

export const EACH_MILLISECONDS = 5 * 60_000;

/** The whole intervals of a few hours that ended before `now`, the oldest first. */
export function pastIntervals(now: number, count: number): IntervalText[] {
  const end = Math.floor(now / EACH_MILLISECONDS) * EACH_MILLISECONDS;
  const at = (n: number) => new Date(end - (count - n) * EACH_MILLISECONDS).toISOString();
  return Array.from({ length: count }, (_, n) => ({ start: at(n), end: at(n + 1) }));
}

/** Inserts events of many projects into each interval, as capture would have stored them. */
export async function fill(
  pool: Pool,
  { projects, events, intervals }: { projects: number; events: number; intervals: readonly IntervalText[] },
): Promise<void> {
  await pool.query(
    `insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
       elements_chain, person_id, person_mode, person_properties)
     select project, gen_random_uuid(), at, at, at, false, '$pageview', 'user-' || n % 50,
       json_build_object('$current_url', 'https://example.com/' || n, 'text', repeat('x', 500)), '',
       '00000000-0000-4000-8000-000000000001', 'full', '{}'
     from generate_series(1, $1::int) as project, generate_series(1, $2::int) as n,
       unnest($3::timestamptz[], $4::timestamptz[]) as interval_of (start_at, end_at),
       lateral (select start_at + (end_at - start_at) * n / ($2 + 1) as at) as moment`,
    [projects, events, intervals.map(({ start }) => start), intervals.map(({ end }) => end)],
  );
  await pool.query('analyze events');
}

export async function createExport(
  pool: Pool,
  keyring: Keyring,
  given: { projectId: number; name: string; type: string; config: Record<string, unknown> },
): Promise<BatchExportRow> {
  const id = uuidv7();
  const { projectId, name, type, config } = given;
  return insertBatchExport(pool, {
    ...{ id, project_id: projectId, name, model: 'events' as const, interval: 'every 5 minutes' as const },
    ...sealSettings(keyring, id, { type, config }),
  });
}

/** A run, a backfill or a verification of an export, and when it was fired. */
export interface Firing {
  at: number;
  /** By what the run or the backfill is found. For a verification, its end stands here at once. */
  workflowId?: string;
  finishedAt?: number;
}

export type Kind = 'spread' | 'burst' | 'backfill' | 'verification';

/** Starts work of exports, and notes when. */
export class Load {
  readonly firings: Record<Kind, Firing[]> = { spread: [], burst: [], backfill: [], verification: [] };
  readonly #stack: ExportStack;
  readonly #under = new Set<Promise<unknown>>();

  constructor(stack: ExportStack) {
    this.#stack = stack;
  }

  /** Fires at this moment, however long earlier firings take. */
  at(moment: number, fire: () => Promise<unknown>): void {
    const firing = pause(Math.max(0, moment - Date.now()))
      .then(fire)
      .finally(() => this.#under.delete(firing));
    this.#under.add(firing);
  }

  async run(kind: 'spread' | 'burst', row: BatchExportRow, interval: IntervalText, at: number) {
    const { workflowId } = await this.#stack.schedules.exports.startRun(row, interval, 'repair');
    this.firings[kind].push({ at, workflowId });
  }

  async backfill(row: BatchExportRow, { start, end }: IntervalText, at: number) {
    const key = { projectId: row.project_id, exportId: row.id };
    const workflowId = backfillWorkflowId(row.id, { start, end });
    const begun = await transaction(this.#stack.pool, (client) =>
      insertBackfill(client, { ...key, workflowId, start, end, totalRuns: null }, 1_000),
    );
    if (begun.outcome !== 'started') throw new Error(`a backfill was not started: ${begun.outcome}`);
    await this.#stack.schedules.exports.startBackfill(row, begun.backfill);
    this.firings.backfill.push({ at, workflowId });
  }

  async verify(row: BatchExportRow, interval: IntervalText, at: number, waitMilliseconds: number) {
    const firing: Firing = { at };
    this.firings.verification.push(firing);
    const report = await this.#stack.schedules.exports.verify(row, interval, { waitMilliseconds });
    if (report) firing.finishedAt = Date.now();
  }

  /** Resolves when everything was started, and every verification was answered. */
  async started(): Promise<void> {
    while (this.#under.size > 0) await Promise.all(this.#under);
  }
}

/**
 * Finds the lag in seconds of each firing until its end and until its row existed, and how many have not ended. The time
 * until there is a row is that of Temporal: the run does not know of places yet.
 */
export async function lagsOf(
  pool: Pool,
  firings: readonly Firing[],
): Promise<{ lags: number[]; begun: number[]; open: number; wrong: number }> {
  const { rows } = await pool.query(
    `select workflow_id as id, status, finished_at as at, created_at as begun
     from batch_export_runs where workflow_id = any($1)
     union all select workflow_id, status, finished_at, created_at from batch_export_backfills where workflow_id = any($1)`,
    [firings.flatMap(({ workflowId }) => workflowId ?? [])],
  );
  const found = new Map(
    rows.map((row) => [row.id as string, row as { status: string; at: string | null; begun: string }]),
  );
  const ended = firings.map(({ at, workflowId, finishedAt }) => {
    const row = workflowId === undefined ? undefined : found.get(workflowId);
    const end = finishedAt ?? (row?.at ? Date.parse(row.at) : undefined);
    return {
      lag: end === undefined ? undefined : (end - at) / 1000,
      begun: row === undefined ? undefined : (Date.parse(row.begun) - at) / 1000,
      status: row?.status ?? 'Completed',
    };
  });
  return {
    lags: ended.flatMap(({ lag }) => lag ?? []).sort((a, b) => a - b),
    begun: ended.flatMap(({ begun }) => begun ?? []).sort((a, b) => a - b),
    open: ended.filter(({ lag }) => lag === undefined).length,
    wrong: ended.filter(({ lag, status }) => lag !== undefined && status !== 'Completed').length,
  };
}
