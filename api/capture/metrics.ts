import type { RefusalReason } from '../../capture/decode/limits.ts';
import type { Notices } from '../../capture/parse/notices.ts';
import { Counter, Gauge, type Registry, Tally } from '../../telemetry/metrics.ts';
import type { Gate } from '../public/gate.ts';

/** The metrics of requests to capture. The metrics of stored events are in `capture/ingest/metrics.ts`. */
export function createCaptureMetrics(registry: Registry, gate: Gate) {
  const registers = [registry];
  const [ok, events, received, decoded] = [new Tally(), new Tally(), new Tally(), new Tally()];
  const requests = new Counter({
    name: 'sluice_capture_requests_total',
    help: 'Capture requests by status.',
    labelNames: ['status'] as const,
    registers,
    collect() {
      ok.tell(this, { status: '200' });
    },
  });
  const noticed = new Counter({
    name: 'sluice_capture_notices_total',
    help: 'Events that capture skipped or changed, by reason.',
    labelNames: ['reason'] as const,
    registers,
  });
  const refusedBodies = new Counter({
    name: 'sluice_capture_refused_bodies_total',
    help:
      'Capture bodies that could not be decoded, were too large after it, or come out of a circle of functions, by reason. ' +
      'None of their events is stored.',
    labelNames: ['reason'] as const,
    registers,
  });
  // The registry collects these when the metrics are scraped.
  new Counter({
    name: 'sluice_capture_events_total',
    help: 'Events in requests answered with 200, including duplicates.',
    registers,
    collect() {
      events.tell(this, {});
    },
  });
  new Counter({
    name: 'sluice_capture_bytes_total',
    help: 'Bytes of capture bodies: as received, and after decompression and decoding.',
    labelNames: ['form'] as const,
    registers,
    collect() {
      received.tell(this, { form: 'received' });
      decoded.tell(this, { form: 'decoded' });
    },
  });
  new Gauge({
    name: 'sluice_capture_held_bytes',
    help: 'Bytes of capture bodies in memory, until their commit.',
    registers,
    collect() {
      this.set(gate.held);
    },
  });
  return {
    received: (count: number) => received.add(count),
    decoded: (count: number) => decoded.add(count),
    refused: (status: number) => requests.labels(String(status)).inc(),
    refusedBody: (reason: RefusalReason) => refusedBodies.labels(reason).inc(),
    answered(count: number, notices: Notices): void {
      ok.add(1);
      events.add(count);
      if (notices.counts.size === 0) return;
      for (const [reason, notice] of notices.counts) noticed.labels(reason).inc(notice.count);
    },
  };
}

export type CaptureMetrics = ReturnType<typeof createCaptureMetrics>;
