import type { Notices } from '../../capture/parse/notices.ts';
import { Counter, Gauge, type Registry } from '../../telemetry/metrics.ts';

import type { Gate } from './gate.ts';

/** What came in at the edge; what became of it is counted by the ingest. */
export function createCaptureMetrics(registry: Registry, gate: Gate) {
  const registers = [registry];
  const requests = new Counter({
    name: 'sluice_capture_requests_total',
    help: 'Capture requests by status.',
    labelNames: ['status'] as const,
    registers,
  });
  const accepted = new Counter({
    name: 'sluice_capture_events_total',
    help: 'Events whose request was answered with 200 after they were committed, repeated ones included.',
    registers,
  });
  const noticed = new Counter({
    name: 'sluice_capture_notices_total',
    help: 'Events that were skipped or changed, by reason.',
    labelNames: ['reason'] as const,
    registers,
  });
  const bytes = new Counter({
    name: 'sluice_capture_bytes_total',
    help: 'Bytes of capture bodies: as received, and as decompressed and decoded.',
    labelNames: ['form'] as const,
    registers,
  });
  // Registered is enough: it is read when somebody asks.
  new Gauge({
    name: 'sluice_capture_held_bytes',
    help: 'Bytes of capture bodies in memory: being received, decoded, or waiting for their commit.',
    registers,
    collect() {
      this.set(gate.held);
    },
  });
  const ok = requests.labels('200');
  const received = bytes.labels('received');
  const decoded = bytes.labels('decoded');
  return {
    received: (count: number) => received.inc(count),
    decoded: (count: number) => decoded.inc(count),
    refused: (status: number) => requests.labels(String(status)).inc(),
    answered(events: number, notices: Notices): void {
      ok.inc();
      if (events > 0) accepted.inc(events);
      if (notices.counts.size === 0) return;
      for (const [reason, { count }] of notices.counts) noticed.labels(reason).inc(count);
    },
  };
}

export type CaptureMetrics = ReturnType<typeof createCaptureMetrics>;
