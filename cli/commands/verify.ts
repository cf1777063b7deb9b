import type { Command } from 'commander';
import type { Config } from '../../config.ts';
import type { Pool, Queryable } from '../../db/pool.ts';
import { verifyExport } from '../../exports/commands/verify.ts';
import { intervalMap } from '../../exports/reads/health.ts';
import { newestExported } from '../../exports/reads/newest-exported.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { VerifyReport } from '../../exports/rules/verify-report.ts';
import type { ExportTemporal } from '../../exports/temporal.ts';
import { type IntervalText, intervalText, rangeText } from '../../intervals/index.ts';
import { OPERATOR } from '../../tenancy/actor.ts';
import { CAUSES, CommandError, remark, say, sayJson, withPool, withTemporal } from '../context.ts';
import { findExport } from '../find-export.ts';

/** How long one request waits for the report. If the verification takes longer, the next request joins it. */
const WAIT_MILLISECONDS = 20_000;
const FINE = new Set(['same', 'expired']);

function instantOf(option: string, given: string | undefined): number | undefined {
  if (given === undefined) return undefined;
  const instant = Date.parse(given);
  if (Number.isNaN(instant))
    throw new CommandError(`${option}: "${given}" is not a date (2027-01-31, or with a time).`);
  return instant;
}

/**
 * Finds the whole intervals of the range that have ended. Leaves out intervals that were not due and were not exported.
 * Without a range, finds the newest exported interval.
 */
async function intervalsOf(
  queryable: Queryable,
  row: BatchExportRow,
  range: { from: number | undefined; to: number | undefined },
  now: number,
): Promise<IntervalText[]> {
  const { from, to } = range;
  if (from === undefined && to === undefined) {
    const newest = await newestExported(queryable, row, now);
    if (!newest) throw new CommandError('Nothing has been exported yet.');
    return [newest];
  }
  const start = from ?? Date.parse(row.start_at ?? row.created_at);
  const entries = await intervalMap(queryable, row, { start, end: to ?? now }, now);
  if (entries.length === 0) throw new CommandError('No whole interval between --from and --to has ended.');
  const due = entries.filter((one) => one.state !== 'excluded');
  if (due.length < entries.length) {
    const left = entries.length - due.length;
    remark(`${left === 1 ? '1 interval was' : `${left} intervals were`} not due, and not exported.`);
  }
  return due.map(intervalText);
}

async function verify(
  temporal: ExportTemporal,
  row: BatchExportRow,
  interval: IntervalText,
): Promise<VerifyReport> {
  for (;;) {
    const wait = { waitMilliseconds: WAIT_MILLISECONDS };
    const report = await verifyExport({ temporal, logger: CAUSES }, OPERATOR, row, interval, wait);
    if (report) return report;
    remark(`${rangeText(interval)} is being verified; waiting …`);
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
  let wrong = 0;
  await withTemporal(config, true, async (temporal) => {
    for (const interval of intervals) {
      const report = await verify(temporal, row, interval);
      if (!FINE.has(report.verdict)) wrong += 1;
      if (options.json) {
        sayJson(report);
        continue;
      }
      const rows = report.destination.rows ?? report.source.rows;
      say(
        `${report.verdict}  ${rangeText(report.interval)}  ${rows === 1 ? '1 row' : `${rows ?? '?'} rows`}`,
      );
      for (const problem of report.problems) say(`  ${problem}`);
    }
  });
  if (!options.json && intervals.length > 1) {
    say(`${intervals.length - wrong} of ${intervals.length} intervals are as they should be.`);
  }
  if (wrong > 0) process.exitCode = 1;
}

export function verifyCommand(program: Command): void {
  program
    .command('verify <export>')
    .description(
      'Compare what a batch export (its id or name) left at its destination with its manifest and the database. The exit ' +
        'code is 1 if something differs. Needs a running worker.',
    )
    .option('--from <time>', 'where the range begins; without a range, verify the newest exported interval')
    .option('--to <time>', 'where the range ends; default: now')
    .option('--json', 'print a report as JSON on each line')
    .action((name: string, options: { from?: string; to?: string; json?: boolean }) =>
      withPool((pool, config) => verifyAll(pool, config, name, options)),
    );
}
