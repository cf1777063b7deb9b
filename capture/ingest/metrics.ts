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
    help: 'Approximate memory of accepted events that are not committed yet.',
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
      help: 'Events by result: stored, duplicate (stored before or sent twice), refused (Postgres cannot store them).',
      labelNames: ['result'],
      registers,
    }),
    unavailable: new Counter({
      name: 'sluice_ingest_unavailable_total',
      help: 'Requests refused with 503, by reason: full (too many events wait), late (not committed in time), stopping.',
      labelNames: ['reason'],
      registers,
    }),
    persons: new Counter({
      name: 'sluice_ingest_persons_total',
      help: 'Persons that events created, changed, or merged into another person.',
      labelNames: ['change'],
      registers,
    }),
    commitSeconds: new Histogram({
      name: 'sluice_ingest_commit_seconds',
      help: 'Duration of transactions that store events, from begin to commit.',
      buckets: SECONDS,
      registers,
    }),
    batchEvents: new Histogram({
      name: 'sluice_ingest_batch_events',
      help: 'Number of events per transaction.',
      buckets: SIZES,
      registers,
    }),
  };
}
