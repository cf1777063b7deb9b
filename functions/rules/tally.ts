import { Masking, type MaskingRule, type MaskKey } from './masking.ts';
import type { StoredEvent } from './stored-event.ts';

/** What one version does with one event. */
export interface Scanned {
  /** How many times the program would run. */
  invocations: number;
  /** Why filters could not be evaluated. */
  error?: string;
  /** The key under which masking counts. It is shortened, and only good for comparing. */
  mask?: MaskKey;
}

/** What one version of a function would do with the events of a scan. */
export interface VersionCounts {
  /** Events for which the program would run at least once, before masking. */
  matched: number;
  /** How many times it would run: once for an event, or once for each mapping that matches. */
  invocations: number;
  /** How many of these masking leaves out. */
  masked: number;
  /** Events whose filters or whose key of masking cannot be evaluated. */
  failed: number;
  /** The first different reasons. */
  errors: { message: string; events: number }[];
}

/** What one version would do with one event. */
export interface VersionOutcome {
  invocations: number;
  /** How many of them masking lets through. */
  passed: number;
}

/** An event for which at least one version would run. */
export interface MatchedEvent {
  uuid: string;
  timestamp: string;
  versions: VersionOutcome[];
}

interface Occurrence {
  key: string;
  time: number;
  outcome: VersionOutcome;
}

const MOST_MATCHES = 1_000;
const MOST_ERRORS = 10;

/** Counts what versions of a function would do with events. Events come newest first. */
export class Tally {
  readonly counts: VersionCounts[];
  /** The newest events for which at least one version would run. */
  readonly matches: MatchedEvent[] = [];
  /** How many events every version would run for. */
  common = 0;
  readonly #rules: readonly (MaskingRule | null)[];
  readonly #occurrences: Occurrence[][];

  constructor(rules: readonly (MaskingRule | null)[]) {
    this.#rules = rules;
    this.#occurrences = rules.map(() => []);
    this.counts = rules.map(() => ({ matched: 0, invocations: 0, masked: 0, failed: 0, errors: [] }));
  }

  /** `created_at` is the time that counts for masking. */
  add(
    { uuid, timestamp, created_at }: Pick<StoredEvent, 'uuid' | 'timestamp' | 'created_at'>,
    scanned: readonly Scanned[],
  ): void {
    const versions = scanned.map((one, index) => this.#count(index, one, created_at));
    const matching = versions.filter(({ invocations }) => invocations > 0).length;
    if (matching === versions.length) this.common += 1;
    if (matching > 0 && this.matches.length < MOST_MATCHES) this.matches.push({ uuid, timestamp, versions });
  }

  #count(index: number, { invocations, error, mask }: Scanned, createdAt: string): VersionOutcome {
    const counts = this.counts[index] as VersionCounts;
    const outcome = { invocations, passed: invocations };
    if (invocations > 0) counts.matched += 1;
    counts.invocations += invocations;
    const message = error ?? (mask?.error === undefined ? undefined : `masking: ${mask.error}`);
    if (message !== undefined) {
      counts.failed += 1;
      const known = counts.errors.find((one) => one.message === message);
      if (known) known.events += 1;
      else if (counts.errors.length < MOST_ERRORS) counts.errors.push({ message, events: 1 });
    }
    const key = mask?.key;
    if (key) this.#occurrences[index]?.push({ key, time: Date.parse(createdAt), outcome });
    return outcome;
  }

  /** Applies masking to all events, in the order in which they came in. Called once, after the last event. */
  mask(): void {
    for (const [index, rule] of this.#rules.entries()) {
      if (!rule) continue;
      const counts = this.counts[index] as VersionCounts;
      const masking = new Masking(rule);
      // Events of the same time keep their order, which is the opposite of that of the scan.
      const inOrder = (this.#occurrences[index] ?? []).toReversed().sort((a, b) => a.time - b.time);
      for (const { key, time, outcome } of inOrder) {
        outcome.passed = masking.pass({ key, time, invocations: outcome.invocations });
        counts.masked += outcome.invocations - outcome.passed;
      }
    }
  }
}
