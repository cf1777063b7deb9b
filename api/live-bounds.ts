import { Counter, Gauge, type Registry } from '../telemetry/metrics.ts';

/** What streams may take. Times are in milliseconds. */
export interface LiveBounds {
  /** How many listeners a process has, and how many of them a project may have. */
  listeners: number;
  perProject: number;
  /** How many bytes wait for a listener before events are left out. */
  bytes: number;
  /** How many bytes wait for all listeners of a process before events are left out that are larger than `bytes`. */
  bytesOfAll: number;
  /** How long the others wait for a listener that has no room, until its events are left out. */
  patience: number;
  /** How many events of a project are read of what was stored since the last turn. Its filters share them. The others are counted. */
  eventsAtOnce: number;
  /** How far back a listener that comes again may begin, and how many events it gets of that time. */
  past: number;
  eventsOfPast: number;
  /** How often the horizon is moved at most, and how often a process looks where it is. */
  closing: number;
  looking: number;
  /** How often a stream shows that it works, and its caller is checked. */
  beat: number;
  /** How long a client may take nothing while something waits for it. */
  stalled: number;
  /** How long a stream lasts. */
  longest: number;
}

const LISTENERS = 100;

export const LIVE_BOUNDS: LiveBounds = {
  listeners: LISTENERS,
  perProject: 20,
  bytes: 512 * 1024,
  bytesOfAll: 64 * 1024 * 1024,
  patience: 250,
  eventsAtOnce: 2_000,
  past: 10 * 60_000,
  eventsOfPast: 20_000,
  closing: 1_000,
  looking: 200,
  beat: 15_000,
  stalled: 60_000,
  longest: 15 * 60_000,
};

export interface LiveCounts {
  sent: Counter;
  skipped: Counter;
}

/** Creates the metrics of streams. */
export function createLiveCounts(
  registry: Registry,
  now: { listeners: () => number; waiting: () => number },
): LiveCounts {
  const registers = [registry];
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      ...{ name, help, registers },
      collect() {
        this.set(value());
      },
    });
  gauge('sluice_live_listeners', 'Open streams of live events.', now.listeners);
  gauge(
    'sluice_live_waiting_bytes',
    'Bytes that wait for slow clients of streams of live events.',
    now.waiting,
  );
  const counter = (name: string, help: string) => new Counter({ name, help, registers });
  return {
    sent: counter('sluice_live_events_total', 'Events sent to streams of live events.'),
    skipped: counter(
      'sluice_live_events_skipped_total',
      'Events that streams of live events left out, because a client or the reader was behind.',
    ),
  };
}
