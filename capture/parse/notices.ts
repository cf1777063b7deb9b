import type { SkippedEvent } from '../captured-event.ts';
import { REFUSAL_REASONS, type RefusalReason } from '../decode/limits.ts';
import { PERSON_REASONS, type PersonReason } from '../persons/notice.ts';

/** Why an event is not stored, although its request is answered with 200. */
export const SKIP_REASONS = [
  'missing_event_name',
  'missing_distinct_id',
  'not_an_object',
  'properties_not_an_object',
  'nested_too_deep',
  'too_many_values',
  'transformation_failed',
] as const;
/** What was changed in an event that is stored. */
export const CHANGE_REASONS = [
  'text_cleaned',
  'invalid_utf8_replaced',
  'invalid_uuid_replaced',
  'event_name_truncated',
  'distinct_id_truncated',
  'timestamp_unreadable',
  'timestamp_in_future',
  'timestamp_out_of_range',
  'option_unreadable',
  'process_person_profile_unreadable',
] as const;

/** What happened to the events of a reason. */
export type Effect = 'skipped' | 'changed' | 'not_applied';
export type SkipReason = (typeof SKIP_REASONS)[number];
export type ChangeReason = (typeof CHANGE_REASONS)[number];
export type Reason = SkipReason | ChangeReason | PersonReason | RefusalReason;

const SKIPS = new Set<string>([...SKIP_REASONS, ...REFUSAL_REASONS]);
const NOT_APPLIED = new Set<string>(PERSON_REASONS);

export function effectOf(reason: Reason): Effect {
  if (SKIPS.has(reason)) return 'skipped';
  return NOT_APPLIED.has(reason) ? 'not_applied' : 'changed';
}

/** How often a reason occurred in one request, and the first event with it. */
export interface Notice {
  count: number;
  first: Omit<SkippedEvent, 'index'> & { index?: number };
}

/** How many skipped events are listed one by one. The counts include all of them. */
const LISTED = 1000;
const SAMPLE_LENGTH = 200;

/** A value, shortened for a warning. */
export function sample(value: unknown): unknown {
  if (value === undefined || value === null || typeof value === 'number' || typeof value === 'boolean') {
    return value ?? null;
  }
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '');
  return text.slice(0, SAMPLE_LENGTH).toWellFormed().replaceAll('\u0000', '\ufffd');
}

/** Collects what the project should know about the events of one request. */
export class Notices {
  readonly skipped: SkippedEvent[] = [];
  readonly counts = new Map<Reason, Notice>();
  skippedCount = 0;

  /** Restores notices that another thread has collected. */
  static from({
    skipped,
    counts,
    skippedCount,
  }: Pick<Notices, 'skipped' | 'counts' | 'skippedCount'>): Notices {
    return Object.assign(new Notices(), { skipped, counts, skippedCount });
  }

  skip(reason: SkipReason, index: number, detail: Record<string, unknown>): void {
    this.skippedCount += 1;
    if (this.skipped.length < LISTED) this.skipped.push({ index, reason, detail });
    this.#count(reason, index, detail);
  }

  changed(reason: ChangeReason, index: number, detail: Record<string, unknown>): void {
    this.#count(reason, index, detail);
  }

  /** The event is stored, but the change of a person or group that it asked for was not made. */
  notApplied(reason: PersonReason, index: number, detail: Record<string, unknown>): void {
    this.#count(reason, index, detail);
  }

  /** The whole body is refused. */
  refused(reason: RefusalReason, detail: Record<string, unknown>): void {
    this.counts.set(reason, { count: 1, first: { reason, detail } });
  }

  #count(reason: Reason, index: number, detail: Record<string, unknown>): void {
    const known = this.counts.get(reason);
    if (known) known.count += 1;
    else this.counts.set(reason, { count: 1, first: { index, reason, detail } });
  }
}
