import type { Command } from 'commander';
import { createPool, type Pool } from '../../db/pool.ts';
import type { GivenAddresses } from '../../db/roles/address.ts';
import { findRoles } from '../../db/roles/roles.ts';
import { Turns } from '../../db/turns.ts';
import { backfillExport } from '../../exports/commands/backfill.ts';
import { cancelBackfill, cancelRun } from '../../exports/commands/cancel.ts';
import type { ExportCommandDependencies } from '../../exports/commands/dependencies.ts';
import { pauseExport, unpauseExport } from '../../exports/commands/pause.ts';
import { removeExport } from '../../exports/commands/remove.ts';
import { retryRun } from '../../exports/commands/retry.ts';
import type { BackfillRow } from '../../exports/rows/backfills.ts';
import { type BatchExportRow, keyOf } from '../../exports/rows/batch-exports.ts';
import { rangeText } from '../../intervals/index.ts';
import { OPERATOR } from '../../tenancy/actor.ts';
import {
  CAUSES,
  CommandError,
  keyringOf,
  REMARKS,
  say,
  sayJson,
  withPool,
  withTemporal,
} from '../context.ts';
import { findExport, findRunOfExport, findRunOrBackfill } from '../find-export.ts';

interface Dependencies extends Pick<ExportCommandDependencies, 'pool' | 'temporal' | 'logger'> {
  database: GivenAddresses;
}

/** Finds the export, run or backfill that the command names, then does the work on it. */
const act = <Found>(
  find: (pool: Pool) => Promise<Found>,
  work: (deps: Dependencies, found: Found) => Promise<void>,
  { needsTemporal = false } = {},
): Promise<void> =>
  withPool(async (pool, config, database) => {
    const found = await find(pool);
    const logger = needsTemporal ? CAUSES : REMARKS;
    await withTemporal(config, needsTemporal, (temporal) =>
      work({ pool, temporal, logger, database }, found),
    );
  });

/** Prints the result: with `--json` as JSON, otherwise as a sentence. */
const tell = ({ json }: { json?: boolean }, result: object, sentence: string): void =>
  void (json ? sayJson(result) : say(sentence));

const rangeOf = ({ start_at: start, end_at: end }: BackfillRow) =>
  rangeText({ start, end: end ?? new Date().toISOString() });

const resultOf = ({ id, workflow_id, start_at, end_at, total_runs }: BackfillRow) => ({
  backfill_id: id,
  ...{ workflow_id, start_at, end_at, total_runs },
});

async function startNow(deps: Dependencies, row: BatchExportRow) {
  // Only this command compiles a query. Loading the compiler would double the time that the other commands take to start.
  const { createCompiler } = await import('../../models/index.ts');
  const { runExport } = await import('../../exports/commands/run-now.ts');
  const compiler = createCompiler({ threads: 1 });
  const reader = createPool({ url: (await findRoles(deps.database)).reader, size: 1, name: 'cli-reader' });
  try {
    const compiling = new Turns({ atOnce: 1 });
    return await runExport({ ...deps, reader, compiler, compiling }, OPERATOR, row, {});
  } finally {
    await Promise.all([compiler.close(), reader.end()]);
  }
}

/** Adds the commands that act on one batch export, as the operator. */
export function exportActions(group: Command): void {
  pausing(group);
  running(group);
  testing(group);
  ending(group);
}

function pausing(group: Command): void {
  group
    .command('pause <export>')
    .description('Pause a batch export (its id or name). Runs in progress continue.')
    .action((name: string) =>
      act(
        (pool) => findExport(pool, name),
        async (deps, row) => {
          await pauseExport(deps, OPERATOR, keyOf(row));
          say(`${row.name} is paused.`);
        },
      ),
    );

  group
    .command('unpause <export>')
    .description('Resume a batch export (its id or name).')
    .option('--backfill', 'also export what it missed while it was paused')
    .option('--json', 'print JSON')
    .action((name: string, options: { backfill?: boolean; json?: boolean }) =>
      act(
        (pool) => findExport(pool, name),
        async (deps, row) => {
          const { backfill: wanted = false } = options;
          const begun = await unpauseExport(deps, OPERATOR, row, { backfill: wanted });
          const result = { paused: false, backfill: begun ? resultOf(begun.backfill) : null };
          if (!row.paused) return tell(options, result, `${row.name} was not paused.`);
          if (!wanted) return tell(options, result, `${row.name} is resumed.`);
          const missed = begun
            ? `the backfill ${begun.backfill.id} exports what it missed, ${rangeOf(begun.backfill)}`
            : 'it missed nothing';
          tell(options, result, `${row.name} is resumed; ${missed}.`);
        },
      ),
    );
}

function running(group: Command): void {
  group
    .command('run <export>')
    .description(
      'Export the last finished interval of a batch export (its id or name) now. If that interval has no rows, export the ' +
        'current one up to now.',
    )
    .option('--json', 'print JSON')
    .action((name: string, options: { json?: boolean }) =>
      act(
        (pool) => findExport(pool, name),
        async (deps, row) => {
          const { interval, workflowId, workflowRunId } = await startNow(deps, row);
          const result = {
            data_interval_start: interval.start,
            data_interval_end: interval.end,
            workflow_id: workflowId,
            workflow_run_id: workflowRunId,
          };
          tell(options, result, `${row.name} exports ${rangeText(interval)}: the workflow is ${workflowId}.`);
        },
        { needsTemporal: true },
      ),
    );

  group
    .command('backfill <export>')
    .description('Export a range of the past of a batch export (its id or name).')
    .requiredOption('--from <time>', 'where the range begins: a time with a zone; for days and weeks, a date')
    .option('--to <time>', 'where the range ends, in the same form; optional only for HTTP and NoOp')
    .option('--json', 'print JSON')
    .action((name: string, options: { from: string; to?: string; json?: boolean }) =>
      act(
        (pool) => findExport(pool, name),
        async (deps, row) => {
          const range = { start_at: options.from, end_at: options.to };
          const { backfill, isNew } = await backfillExport(deps, OPERATOR, row, range);
          const again = isNew ? '' : ' already';
          const sentence = `The backfill ${backfill.id} of ${row.name}${again} exports ${rangeOf(backfill)}.`;
          tell(options, { ...resultOf(backfill), is_new: isNew }, sentence);
        },
      ),
    );

  group
    .command('retry <run>')
    .description('Export the interval of an ended run (its id) again, as a backfill of one interval.')
    .option('--json', 'print JSON')
    .action((id: string, options: { json?: boolean }) =>
      act(
        (pool) => findRunOfExport(pool, id),
        async (deps, { row, run }) => {
          const { backfill, isNew } = await retryRun(deps, OPERATOR, row, run);
          const again = isNew ? 'again' : 'already';
          const sentence = `The backfill ${backfill.id} exports ${rangeOf(backfill)} of ${row.name} ${again}.`;
          tell(options, { ...resultOf(backfill), is_new: isNew }, sentence);
        },
      ),
    );
}

function testing(group: Command): void {
  group
    .command('test <export>')
    .description(
      'Test the destination of a batch export (its id or name) from here. Nothing of it stays there.',
    )
    .option('--json', 'print JSON')
    .action((name: string, options: { json?: boolean }) =>
      withPool(async (pool, config) => {
        const row = await findExport(pool, name);
        // Only this command needs these, and they take longer to load than the other commands run.
        const { createEgress } = await import('../../egress/egress.ts');
        const { listTestSteps, testExportDestination } = await import(
          '../../exports/commands/test-destination.ts'
        );
        const egress = createEgress({ allow: config.SLUICE_EGRESS_ALLOW });
        const deps = {
          ...{ pool, egress, keyring: keyringOf(config), exportRoot: config.SLUICE_EXPORT_ROOT },
          diskOf: 'the machine of this command',
        };
        const steps: Awaited<ReturnType<typeof testExportDestination>>[] = [];
        try {
          for (const step of listTestSteps(row.destination_type).keys()) {
            const done = await testExportDestination(deps, OPERATOR, row, undefined, { step });
            steps.push(done);
            const { status, message } = done.result ?? {};
            if (!options.json) say(`${status}: ${done.name}${message ? `. ${message}` : ''}`);
            if (status === 'Failed') break;
          }
        } finally {
          await egress.close();
        }
        if (options.json) sayJson({ steps });
        if (steps.at(-1)?.result?.status === 'Failed') process.exitCode = 1;
      }),
    );
}

function ending(group: Command): void {
  group
    .command('cancel <id>')
    .description('Cancel a run, or a backfill and its runs (its id).')
    .action((id: string) =>
      act(
        (pool) => findRunOrBackfill(pool, id),
        async (deps, found) => {
          if ('run' in found) {
            const { data_interval_start: start, data_interval_end: end } = found.run;
            await cancelRun(deps, OPERATOR, found.run);
            say(`Cancelled the run of ${found.row.name} for ${rangeText({ start, end })}.`);
          } else {
            await cancelBackfill(deps, OPERATOR, found.backfill);
            say(`Cancelled the backfill of ${found.row.name} for ${rangeOf(found.backfill)}, with its runs.`);
          }
        },
      ),
    );

  group
    .command('delete <export>')
    .description(
      'Delete a batch export (its id or name) and cancel its runs and backfills. Exported data stays.',
    )
    .option('--yes', 'required, because this cannot be undone')
    .action((name: string, options: { yes?: boolean }) =>
      act(
        async (pool) => {
          const row = await findExport(pool, name);
          if (options.yes) return row;
          throw new CommandError(
            `To delete the batch export ${row.name} (${row.id}) for good, repeat the command with --yes.`,
          );
        },
        async (deps, row) => {
          await removeExport(deps, OPERATOR, row);
          say(`Deleted ${row.name}. Exported data stays.`);
        },
      ),
    );
}
