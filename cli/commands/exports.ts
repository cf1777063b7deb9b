import type { Command } from 'commander';
import { exportHealth } from '../../exports/reads/health.ts';
import { type BatchExportRow, keyOf } from '../../exports/rows/batch-exports.ts';
import type { Health } from '../../exports/rows/health.ts';
import { type ExportWait, findWaits } from '../../exports/rows/place-workers.ts';
import { latestRuns } from '../../exports/rows/run-lists.ts';
import type { RunRow } from '../../exports/rows/runs.ts';
import { isOnce } from '../../exports/rules/once.ts';
import { instantText } from '../../values/dates.ts';
import { CommandError, say, sayJson, withPool } from '../context.ts';
import { allExports } from '../find-export.ts';
import { exportActions } from './export-actions.ts';

const UNITS = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
] as const;

/** Writes a duration in the largest unit that it has at least twice: `3 hours`. */
export function durationText(seconds: number): string {
  const [name, size] = UNITS.find(([, one]) => seconds >= 2 * one) ?? ['second', 1];
  const count = Math.round(seconds / size);
  return `${count} ${name}${count === 1 ? '' : 's'}`;
}

const LONGEST_QUERY = 200;

/** Writes a query in one line. */
export function queryText(query: string): string {
  const line = query.replace(/[\s\p{Cc}\p{Cf}]+/gu, ' ').trim();
  return line.length > LONGEST_QUERY ? `${line.slice(0, LONGEST_QUERY)}…` : line;
}

const waitText = ({ runs, since }: ExportWait) =>
  `${runs} run${runs === 1 ? ' waits' : 's wait'} for a place of a worker since ${instantText(since)}`;

/** Describes the state of an export in a few words. The most important comes first. */
export function stateText(
  row: Pick<BatchExportRow, 'paused' | 'last_paused_at'>,
  health: Health,
  wait?: ExportWait,
): string {
  const found = [
    row.paused && `paused${row.last_paused_at ? ` since ${instantText(row.last_paused_at)}` : ''}`,
    health.missing > 0 && `${health.missing} missing`,
    health.differs > 0 && `${health.differs} not as exported`,
    health.late > 0 && `${health.late} late`,
    health.lag_seconds > 0 && `${durationText(health.lag_seconds)} behind`,
    wait && waitText(wait),
  ].filter((one) => typeof one === 'string');
  return found.length > 0 ? found.join(', ') : 'on time';
}

const runText = (run: RunRow | undefined) =>
  run ? `last run ${run.status}, of the interval until ${instantText(run.data_interval_end)}` : 'no run yet';

export function exportsCommand(program: Command): void {
  const group = program.command('exports');
  group
    .enablePositionalOptions()
    .description(
      'List the batch exports with their missing intervals and how far they are behind. The exit code is 1 if an interval ' +
        'is missing, late or different. Each subcommand acts on one batch export.',
    )
    .option('--project <id>', 'list only the batch exports of this project')
    .option('--json', 'print JSON')
    .action((options: { project?: string; json?: boolean }) =>
      withPool(async (pool) => {
        const { project } = options;
        if (project !== undefined && !/^\d{1,9}$/.test(project)) {
          throw new CommandError(`--project: "${project}" is not the id of a project.`);
        }
        const now = Date.now();
        const list: object[] = [];
        let wrong = 0;
        for await (const row of allExports(pool)) {
          if (project !== undefined && row.project_id !== Number(project)) continue;
          const key = keyOf(row);
          const [health, runs] = [await exportHealth(pool, row, now), await latestRuns(pool, [key], 1)];
          const [last] = runs.get(row.id) ?? [];
          const wait = (await findWaits(pool, [key])).get(row.id);
          if (health.missing + health.differs + health.late > 0) wrong += 1;
          list.push({
            ...{ id: row.id, project_id: row.project_id, name: row.name, model: row.model },
            ...{ interval: row.interval, destination: row.destination_type, paused: row.paused, ...health },
            hogql_query: row.hogql_query,
            waiting: wait ?? null,
            last_run: last
              ? {
                  ...{ id: last.id, status: last.status, interval_end: last.data_interval_end },
                  latest_error: last.latest_error,
                }
              : null,
          });
          if (options.json) continue;
          const every =
            isOnce(row) || row.interval.startsWith('every') ? row.interval : `every ${row.interval}`;
          say(
            `${row.id}  ${row.name}  project ${row.project_id}, ${row.model} ${every} to ${row.destination_type}: ` +
              `${stateText(row, health, wait)}; ${runText(last)}`,
          );
          if (row.hogql_query !== null) say(`  ${queryText(row.hogql_query)}`);
          if (last?.latest_error) say(`  ${last.latest_error}`);
        }
        if (options.json) sayJson({ exports: list }, 2);
        else if (list.length === 0) {
          say(`There is no batch export${project === undefined ? '' : ` in project ${project}`}.`);
        }
        if (wrong > 0) process.exitCode = 1;
      }),
    );
  exportActions(group);
}
