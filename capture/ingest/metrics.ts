import { Counter, Gauge, Histogram, type Registry } from '../../telemetry/metrics.ts';

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SIZES = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 50_000];

interface IngestMetrics {
  events: Counter<'result'>;
  unavailable: Counter<'reason'>;
  persons: Counter<'change'>;
  commitSeconds: Histogram;
  batchEvents: Histogram;
}

/** The metrics of ingestion. `queue` is called when the metrics are read. */
export function createIngestMetrics(
  registry: Registry | undefined,
  queue: () => { bytes: number; events: number },
): IngestMetrics {
  const registers = registry ? [registry] : [];
  new Gauge({
    name: 'sluice_ingest_queue_bytes',
    help: 'About how much memory the accepted events take that are not committed yet.',
    registers,
    collect() {
      this.set(queue().bytes);
    },
  });
  new Gauge({
    name: 'sluice_ingest_queue_events',
    help: 'Accepted events that are not committed yet.',
    registers,
    collect() {
      this.set(queue().events);
    },
  });
  return {
    events: new Counter({
      name: 'sluice_ingest_events_total',
      help: 'Events by what became of them: stored, duplicate (known or sent twice), refused (Postgres cannot hold them).',
      labelNames: ['result'],
      registers,
    }),
    unavailable: new Counter({
      name: 'sluice_ingest_unavailable_total',
      help: 'Requests that were sent away, by reason: full (too much waits), late (no commit in time), stopping.',
      labelNames: ['reason'],
      registers,
    }),
    persons: new Counter({
      name: 'sluice_ingest_persons_total',
      help: 'Persons by what events did to them: created, changed, merged (into another one).',
      labelNames: ['change'],
      registers,
    }),
    commitSeconds: new Histogram({
      name: 'sluice_ingest_commit_seconds',
      help: 'From the begin to the commit of a transaction that stores events.',
      buckets: SECONDS,
      registers,
    }),
    batchEvents: new Histogram({
      name: 'sluice_ingest_batch_events',
      help: 'Events in one transaction.',
      buckets: SIZES,
      registers,
    }),
  };
}
