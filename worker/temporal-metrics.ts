import { MetricsBuffer } from '@temporalio/worker';
import { Counter, Gauge, Histogram, type Registry } from '../telemetry/metrics.ts';

/** What has failed since the last look: how often, of which workflows and why. */
export interface TaskFailures {
  count: number;
  workflowTypes: string[];
  reasons: string[];
}

export interface TemporalMetrics {
  /** For the options of Temporal's runtime. */
  buffer: MetricsBuffer;
  /** Returns the workflow tasks that failed since the last call. */
  takeFailures(): TaskFailures;
  close(): void;
}

/** How often what the SDK has measured is fetched, in milliseconds. It drops what its buffer does not hold. */
const FETCH_EVERY = 2_000;
const BUFFER = 50_000;
/** Metrics have these labels, and no others: each value of a label is a row for every reader of metrics. */
const LABELS = [
  'task_queue',
  'worker_type',
  'poller_type',
  'workflow_type',
  'activity_type',
  'failure_reason',
  'operation',
  'status_code',
];
const SECONDS = [0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 3600];
/** Rows for each operation of the client, and distributions of what the metrics of Sluice tell better. */
const LEFT_OUT = /_request$|(?<!schedule_to_start)_latency$/;

const FAILED_TASKS = 'temporal_workflow_task_execution_failed';

type Metric = Counter | Gauge | Histogram;

/**
 * Passes on what Temporal's SDK measures: failed workflow tasks, slots, how long tasks wait for a worker. They come under the
 * SDK's own names, so that dashboards for it fit.
 */
export function createTemporalMetrics(registry: Registry): TemporalMetrics {
  const buffer = new MetricsBuffer({ maxBufferSize: BUFFER, useSecondsForDurations: true });
  const made = new Map<string, Metric>();
  const failed = { count: 0, types: new Set<string>(), reasons: new Set<string>() };

  const make = (name: string, kind: string, help: string): Metric => {
    const common = { name, help: help || name, labelNames: LABELS, registers: [registry] };
    if (kind === 'counter') return new Counter(common);
    if (kind === 'histogram') return new Histogram({ ...common, buckets: SECONDS });
    return new Gauge(common);
  };

  function fetch(): void {
    for (const { metric, value, attributes } of buffer.retrieveUpdates()) {
      const { name, kind, description } = metric;
      if (LEFT_OUT.test(name)) continue;
      let one = made.get(name);
      if (!one) {
        one = make(name, kind, description ?? '');
        made.set(name, one);
      }
      const labels = Object.fromEntries(
        LABELS.filter((label) => label in attributes).map((label) => [label, String(attributes[label])]),
      );
      if (one instanceof Histogram) one.observe(labels, value);
      else if (one instanceof Counter) one.inc(labels, value);
      else if (kind === 'gauge') one.set(labels, value);
      else one.inc(labels, value);
      if (name !== FAILED_TASKS) continue;
      failed.count += value;
      failed.types.add(labels.workflow_type ?? 'unknown');
      failed.reasons.add(labels.failure_reason ?? 'unknown');
    }
  }
  const timer = setInterval(fetch, FETCH_EVERY);
  timer.unref();
  return {
    buffer,
    takeFailures() {
      fetch();
      const taken = {
        count: failed.count,
        workflowTypes: [...failed.types].sort(),
        reasons: [...failed.reasons].sort(),
      };
      failed.count = 0;
      failed.types.clear();
      failed.reasons.clear();
      return taken;
    },
    close: () => clearInterval(timer),
  };
}
