import type { Pool } from '../../db/pool.ts';
import { DESTINATION_TYPES } from '../../destinations/registry.ts';
import { Counter, Gauge, Histogram, type Registry } from '../../telemetry/metrics.ts';
import { listUnhealthy, secondsSinceChecked, sumHealth } from '../rows/health.ts';
import { type LaneState, sumPlaces } from '../rows/place-workers.ts';

const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 21_600];
const LAG_SECONDS = [15, 30, 60, 120, 300, 900, 3600, 7200, 21_600, 86_400, 604_800];

/** The metrics of what one worker exports. */
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
    runs: counter('runs_total', 'Runs of batch exports that ended, by status.', 'status', 'destination'),
    retries: counter(
      'retries_total',
      'Failed attempts that were retried, by destination and reason.',
      'destination',
      'reason',
    ),
    rows: counter('rows_total', 'Rows exported by completed runs.', 'destination'),
    rejected: counter('rejected_rows_total', 'Rows left out by completed runs.', 'destination'),
    bytes: counter('bytes_total', 'Bytes exported by completed runs.', 'destination'),
    seconds: new Histogram({
      name: 'sluice_export_run_seconds',
      help: 'Duration of completed runs, including retries.',
      labelNames: ['destination'],
      buckets: SECONDS,
      registers,
    }),
    lag: new Histogram({
      name: 'sluice_export_lag_seconds',
      help: 'Time from the end of the interval to the completion of its scheduled run.',
      labelNames: ['destination'],
      buckets: LAG_SECONDS,
      registers,
    }),
    active: new Gauge({
      name: 'sluice_export_active',
      help: 'Runs that are exporting at the moment.',
      registers,
    }),
    paused: counter('paused_total', 'Batch exports that Sluice paused because their runs failed.'),
    notices: counter(
      'notices_total',
      'Attempts to send a notice to the webhook, by result: sent, failed, dropped.',
      'result',
    ),
  };
  // These begin at zero, so that alerts see the first failure as an increase.
  for (const destination of DESTINATION_TYPES) metrics.runs.inc({ status: 'Failed', destination }, 0);
  for (const result of ['failed', 'dropped']) metrics.notices.inc({ result }, 0);
  return metrics;
}

/** How many exports have a value of their own. The sums count all exports. */
const MOST_NAMED = 200;

/**
 * Adds metrics that show how complete batch exports are, as the last reconciliation found them, and who waits for a place
 * of a worker. They are read from the database when the metrics are scraped. So every worker shows the same values, whichever worker reconciled.
 */
export function registerHealthMetrics(registry: Registry, pool: Pool): void {
  const registers = [registry];
  new Gauge({
    name: 'sluice_export_intervals',
    help: 'Recent intervals of batch exports that are missing, late, or differ from the database.',
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
    help: 'Seconds from the first interval that is not done to the end of the last finished one, for each batch export that is behind.',
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
    help: 'Seconds since the check of the batch export that has waited longest. All are checked every five minutes.',
    registers,
    async collect() {
      this.reset();
      const seconds = await secondsSinceChecked(pool);
      if (seconds !== null) this.set(seconds);
    },
  });
  const ofLanes = (name: string, help: string, value: (state: LaneState) => number) =>
    new Gauge({
      name: `sluice_export_${name}`,
      help,
      labelNames: ['lane'],
      registers,
      async collect() {
        for (const state of await sumPlaces(pool)) this.set({ lane: state.lane }, value(state));
      },
    });
  ofLanes('places', 'Places of all workers for runs and verifications, by lane.', (one) => one.places);
  ofLanes('places_taken', 'Places that are taken, by lane.', (one) => one.taken);
  ofLanes('waiting', 'Runs and verifications that wait for a place, by lane.', (one) => one.waiting);
  ofLanes(
    'longest_wait_seconds',
    'How long the run or verification has waited that has waited longest for a place, by lane.',
    (one) => one.longest_wait_seconds,
  );
}
