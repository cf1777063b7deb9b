import type { Command } from 'commander';
import type { Config } from '../../config.ts';
import type { Pool, Queryable } from '../../db/pool.ts';
import { isUuid } from '../../db/uuid.ts';
import { intervalMap } from '../../exports/reads/health.ts';
import { type BatchExportRow, findBatchExportById } from '../../exports/rows/batch-exports.ts';
import { listRuns } from '../../exports/rows/run-lists.ts';
import type { VerifyReport } from '../../exports/rules/verify-report.ts';
import type { Interval } from '../../intervals/index.ts';
import { VerifyError } from '../../schedules/exports/verify.ts';
import { createSchedules, type Schedules } from '../../schedules/schedules.ts';
import { createLogger } from '../../telemetry/logger.ts';
import { instantText } from '../../values/dates.ts';
import { CommandError, remark, say, withPool } from '../context.ts';
import { allExports } from './exports.ts';

/** How long one question waits; a verification that takes longer is asked for again. */
const WAIT_MILLISECONDS = 20_000;
const FINE = new Set(['same', 'expired']);

async function findExport(queryable: Queryable, name: string): Promise<BatchExportRow> {
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

function instantOf(option: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const instant = Date.parse(given);
  if (Number.isNaN(instant))
    throw new CommandError(`${option}: "${given}" is not a date (2027-01-31, or with a time).`);
  return instant;
}

/**
 * The whole intervals of the range that are over, but for those that nobody had to export and nobody did; without a range,
 * the newest one that was exported.
 */
async function intervalsOf(
  queryable: Queryable,
  row: BatchExportRow,
  range: { from: number | undefined; to: number | undefined },
  now: number,
): Promise<Interval[]> {
  const { from, to } = range;
  if (from === undefined && to === undefined) {
    const { rows } = await listRuns(queryable, {
      ...{ projectId: row.project_id, exportId: row.id, ordering: 'data_interval_start', ascending: false },
      ...{ from: '-infinity', to: new Date(now).toISOString(), statuses: ['Completed'], limit: 1 },
    });
    const [run] = rows;
    if (!run?.data_interval_start) throw new CommandError('Nothing has been exported yet.');
    return [{ start: Date.parse(run.data_interval_start), end: Date.parse(run.data_interval_end) }];
  }
  const start = from ?? Date.parse(row.start_at ?? row.created_at);
  const entries = await intervalMap(queryable, row, { start, end: to ?? now }, now);
  if (entries.length === 0)
    throw new CommandError('No whole interval that is over lies between --from and --to.');
  const due = entries.filter((one) => one.state !== 'excluded');
  if (due.length < entries.length) {
    const left = entries.length - due.length;
    remark(`${left === 1 ? '1 interval was' : `${left} intervals were`} not due, and not exported.`);
  }
  return due.map((one) => ({ start: Date.parse(one.start), end: Date.parse(one.end) }));
}

const textOf = ({ start, end }: { start: string | null; end: string }) =>
  `${start === null ? 'the beginning' : instantText(start)} – ${instantText(end)}`;

async function verify(schedules: Schedules, row: BatchExportRow, interval: Interval): Promise<VerifyReport> {
  const named = { start: new Date(interval.start).toISOString(), end: new Date(interval.end).toISOString() };
  for (;;) {
    const report = await schedules.exports
      .verify(row, named, { waitMilliseconds: WAIT_MILLISECONDS })
      .catch((error) => {
        throw error instanceof VerifyError ? new CommandError(error.message) : error;
      });
    if (report) return report;
    if (!schedules.isReachable()) {
      throw new CommandError('Temporal does not answer; `npx sluice doctor` says more.');
    }
    remark(`${textOf(named)} is being verified; waiting …`);
  }
}

async function verifyAll(
  pool: Pool,
  config: Config,
  name: string,
  options: { from?: string; to?: string; json?: boolean },
): Promise<void> {
  const range = { from: instantOf('--from', options.from), to: instantOf('--to', options.to) };
  const row = await findExport(pool, name);
  const intervals = await intervalsOf(pool, row, range, Date.now());
  const TEMPORAL_ADDRESS = config.TEMPORAL_ADDRESS ?? `127.0.0.1:${config.SLUICE_TEMPORAL_PORT}`;
  const logger = createLogger({ name: 'cli', level: 'silent' });
  const schedules = createSchedules({ ...config, TEMPORAL_ADDRESS }, logger);
  let wrong = 0;
  try {
    for (const interval of intervals) {
      const report = await verify(schedules, row, interval);
      if (!FINE.has(report.verdict)) wrong += 1;
      if (options.json) {
        say(JSON.stringify(report));
        continue;
      }
      const rows = report.destination.rows ?? report.source.rows;
      say(`${report.verdict}  ${textOf(report.interval)}  ${rows === 1 ? '1 row' : `${rows ?? '?'} rows`}`);
      for (const problem of report.problems) say(`  ${problem}`);
    }
  } finally {
    await schedules.close();
  }
  if (!options.json && intervals.length > 1) {
    say(`${intervals.length - wrong} of ${intervals.length} intervals are as they should be.`);
  }
  if (wrong > 0) process.exitCode = 1;
}

export function verifyCommand(program: Command): void {
  program
    .command('verify <export>')
    .description(
      'Read again what a batch export (its id or name) left at its destination, and compare it with its manifest and the ' +
        'database; exit code 1 when something differs. Needs a running worker.',
    )
    .option('--from <time>', 'the first interval; without a range, the newest that was exported')
    .option('--to <time>', 'where to end; default: now')
    .option('--json', 'for programs: a report on each line')
    .action((name: string, options: { from?: string; to?: string; json?: boolean }) =>
      withPool((pool, config) => verifyAll(pool, config, name, options)),
    );
}
