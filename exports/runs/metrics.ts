import type { Pool } from '../../db/pool.ts';
import { DESTINATION_TYPES } from '../../destinations/registry.ts';
import { Counter, Gauge, Histogram, type Registry } from '../../telemetry/metrics.ts';
import { listUnhealthy, secondsSinceChecked, sumHealth } from '../rows/health.ts';

const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21_600];
const LAG_SECONDS = [15, 30, 60, 120, 300, 900, 3600, 7200, 21_600, 86_400, 604_800];

/** Counts what one worker does, for the operators. */
export interface ExportMetrics {
  runs: Counter<'status' | 'destination'>;
  retries: Counter<'destination' | 'reason'>;
  rows: Counter<'destination'>;
  rejected: Counter<'destination'>;
  bytes: Counter<'destination'>;
  seconds: Histogram<'destination'>;
  lag: Histogram<'destination'>;
  active: Gauge;
  paused: Counter;
  notices: Counter<'result'>;
}

export function createExportMetrics(registry: Registry | undefined): ExportMetrics {
  const registers = registry ? [registry] : [];
  const counter = <T extends string>(name: string, help: string, ...labelNames: T[]) =>
    new Counter({ name: `sluice_export_${name}`, help, labelNames, registers });
  const metrics = {
    runs: counter('runs_total', 'Runs of batch exports by how they ended.', 'status', 'destination'),
    retries: counter(
      'retries_total',
      'Attempts at runs that failed and are repeated, by reason.',
      'destination',
      'reason',
    ),
    rows: counter('rows_total', 'Rows that completed runs exported.', 'destination'),
    rejected: counter('rejected_rows_total', 'Rows that completed runs left out.', 'destination'),
    bytes: counter('bytes_total', 'Bytes that completed runs exported.', 'destination'),
    seconds: new Histogram({
      name: 'sluice_export_run_seconds',
      help: 'How long runs took that were completed, their retries included.',
      labelNames: ['destination'],
      buckets: SECONDS,
      registers,
    }),
    lag: new Histogram({
      name: 'sluice_export_lag_seconds',
      help: 'How long after the end of its interval a run of the schedule was completed.',
      labelNames: ['destination'],
      buckets: LAG_SECONDS,
      registers,
    }),
    active: new Gauge({
      name: 'sluice_export_active',
      help: 'Runs that are exporting right now.',
      registers,
    }),
    paused: counter('paused_total', 'Batch exports that were paused because their runs failed.'),
    notices: counter(
      'notices_total',
      'Notices to the webhook by what became of them: sent, failed, dropped.',
      'result',
    ),
  };
  // Counted from zero on, so that the first failure is an increase.
  for (const destination of DESTINATION_TYPES) metrics.runs.inc({ status: 'Failed', destination }, 0);
  for (const result of ['failed', 'dropped']) metrics.notices.inc({ result }, 0);
  return metrics;
}

/** So many exports are named one by one. The sums count all of them. */
const MOST_NAMED = 200;

/**
 * Shows how complete batch exports are, as the last reconciliation found them. The numbers are read from the database
 * when somebody asks, so that every worker says the same, whichever of them reconciled.
 */
export function registerHealthMetrics(registry: Registry, pool: Pool): void {
  const registers = [registry];
  new Gauge({
    name: 'sluice_export_intervals',
    help: 'Intervals of batch exports of the last days that are missing, late, or differ from the database.',
    labelNames: ['state'],
    registers,
    async collect() {
      const { missing, late, differs } = await sumHealth(pool);
      this.set({ state: 'missing' }, missing);
      this.set({ state: 'late' }, late);
      this.set({ state: 'differs' }, differs);
    },
  });
  new Gauge({
    name: 'sluice_export_behind_seconds',
    help: 'How far a batch export is behind that is late: from the first interval that is not done. None: nothing is.',
    labelNames: ['project', 'export', 'destination'],
    registers,
    async collect() {
      this.reset();
      for (const one of await listUnhealthy(pool, MOST_NAMED)) {
        const labels = {
          project: String(one.project_id),
          export: one.batch_export_id,
          destination: one.destination_type,
        };
        this.set(labels, one.lag_seconds);
      }
    },
  });
  new Gauge({
    name: 'sluice_export_unchecked_seconds',
    help: 'How long ago the batch export was looked at that was not for longest; every five minutes all should be.',
    registers,
    async collect() {
      this.reset();
      const seconds = await secondsSinceChecked(pool);
      if (seconds !== null) this.set(seconds);
    },
  });
}
