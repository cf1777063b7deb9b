import {
  type ScheduleDescription,
  type ScheduleOptions,
  ScheduleOverlapPolicy,
  type ScheduleSpecDescription,
  type ScheduleSummary,
} from '@temporalio/client';
import type { SearchAttributePair, TypedSearchAttributes } from '@temporalio/common';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import type { ExportRunInput } from '../../exports/temporal.ts';
import { type Cadence, jitterOf, type ScheduleTimes, scheduleTimes } from '../../intervals/index.ts';
import { EXPORT_KIND, EXPORT_RUN, searchAttributes } from '../../workflows/names.ts';

/** What the Temporal UI takes as a summary, in bytes. */
const LONGEST_SUMMARY = 200;
/** As long as the server would take: an interval that was missed for want of Temporal is run when it is back. */
const CATCHUP_WINDOW = 365 * 86_400_000;

export type ExportScheduleRow = Pick<
  BatchExportRow,
  | 'id'
  | 'project_id'
  | 'name'
  | 'model'
  | 'interval'
  | 'timezone'
  | 'interval_offset'
  | 'destination_type'
  | 'paused'
  | 'last_paused_at'
  | 'start_at'
  | 'end_at'
>;

type Told = Pick<BatchExportRow, 'name' | 'model' | 'interval' | 'destination_type'>;

/** A name as the Temporal UI may show it, which reads Markdown: nothing of it becomes a link, a picture or markup. */
const plain = (name: string): string => name.replaceAll(/:\/\/|[\p{Cc}`*~<>[\]|\\\s]+/gu, ' ').trim();

const aboutOf = (row: Told): string =>
  `${row.model} every ${row.interval.replace(/^every /, '')} to ${row.destination_type}: ${plain(row.name)}`;

/** What the Temporal UI shows of a workflow; a long name is cut off. */
export function summaryOf(row: Told, what = 'Batch export'): string {
  const bytes = Buffer.from(`${what} ${aboutOf(row)}`).subarray(0, LONGEST_SUMMARY);
  // Half a character at the end is left out.
  return new TextDecoder().decode(bytes, { stream: true });
}

export function attributesOf(
  row: Pick<BatchExportRow, 'id' | 'project_id' | 'destination_type'>,
  kind: string = EXPORT_KIND,
): SearchAttributePair[] {
  return [
    { key: searchAttributes.kind, value: kind },
    { key: searchAttributes.project, value: row.project_id },
    { key: searchAttributes.export, value: row.id },
    { key: searchAttributes.destination, value: row.destination_type },
  ];
}

/** What a person who looks at the schedule in the Temporal UI reads. */
export const noteOf = (row: Told & Pick<BatchExportRow, 'paused' | 'last_paused_at'>): string =>
  row.paused
    ? `${summaryOf(row)}. Paused in Sluice${row.last_paused_at ? ` at ${row.last_paused_at}` : ''}. Unpause the batch export there.`
    : `${summaryOf(row)}. Kept by Sluice: changes made here are undone.`;

/** Computed once a year for all exports of a cadence: the jumps of the clocks have to be looked for. */
const known = new Map<string, ScheduleTimes>();
const MOST_KNOWN = 1_000;

function timesOf(cadence: Cadence, now: number): ScheduleTimes {
  const key = `${new Date(now).getUTCFullYear()} ${JSON.stringify(cadence)}`;
  let times = known.get(key);
  if (!times) {
    times = scheduleTimes(cadence, now);
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(key, times);
  }
  return times;
}

/** The schedule of an export; `start_at` and `end_at` bound when it fires, both included. */
export function scheduleOf(row: ExportScheduleRow, taskQueue: string, now: number) {
  const input: ExportRunInput = { exportId: row.id };
  return {
    spec: {
      ...timesOf(cadenceOfRow(row), now),
      jitter: jitterOf(row.id),
      ...(row.start_at === null ? {} : { startAt: new Date(row.start_at) }),
      ...(row.end_at === null ? {} : { endAt: new Date(row.end_at) }),
    },
    action: {
      type: 'startWorkflow' as const,
      workflowType: EXPORT_RUN,
      // The server appends the time at which it fires: see scheduledWorkflowId.
      workflowId: row.id,
      taskQueue,
      args: [input],
      typedSearchAttributes: attributesOf(row),
      staticSummary: summaryOf(row),
    },
    // A slow run must not swallow the next one.
    policies: { overlap: ScheduleOverlapPolicy.ALLOW_ALL, catchupWindow: CATCHUP_WINDOW },
    typedSearchAttributes: attributesOf(row),
  } satisfies Omit<ScheduleOptions, 'scheduleId'>;
}

type Wanted = ReturnType<typeof scheduleOf>;

interface Range {
  start: unknown;
  end: unknown;
}

/** One value, or null for "any": the server writes both out as ranges. */
function single(ranges: readonly Range[]): unknown {
  const [first] = ranges;
  return ranges.length === 1 && first?.start === first?.end ? first?.start : null;
}

/** When a schedule fires, in a form that is the same for one that is wanted and for one that the server describes. */
function timing(spec: Wanted['spec'] | ScheduleSpecDescription): unknown[] {
  const field = (value: unknown): unknown =>
    Array.isArray(value) ? single(value as Range[]) : (value ?? null);
  const calendars = (spec.calendars ?? []).map((one) => [
    ...[one.year, one.month, one.dayOfMonth, one.dayOfWeek].map(field),
    ...[one.hour, one.minute, one.second].map(field),
  ]);
  const intervals = (spec.intervals ?? []).map((one) => [Number(one.every), Number(one.offset ?? 0)]);
  const bounds = [spec.startAt?.getTime() ?? null, spec.endAt?.getTime() ?? null];
  return [calendars, intervals, spec.timezone || 'UTC', Number(spec.jitter ?? 0), ...bounds];
}

/** What of a schedule counts. */
function essence(schedule: Wanted | ScheduleDescription): string {
  const { spec, action, policies } = schedule;
  const attributes = [...pairsOf(schedule.typedSearchAttributes), ...pairsOf(action.typedSearchAttributes)];
  return JSON.stringify([
    timing(spec),
    [action.workflowType, action.workflowId, action.taskQueue, action.args, action.staticSummary],
    [policies.overlap, Number(policies.catchupWindow)],
    attributes,
  ]);
}

function pairsOf(attributes: SearchAttributePair[] | TypedSearchAttributes | undefined) {
  const pairs = Array.isArray(attributes) ? attributes : (attributes?.getAll() ?? []);
  return pairs.map(({ key, value }) => `${key.name}=${String(value)}`).sort();
}

/** Whether a schedule fires as it should and does what it should, whether or not it is paused. */
export const sameSchedule = (wanted: Wanted, found: ScheduleDescription): boolean =>
  essence(wanted) === essence(found) && found.state.remainingActions === undefined;

/**
 * Whether what the list of all schedules says of one is right. The list is behind by a moment, leaves out long specs and
 * does not tell what a schedule starts: it is for finding out cheaply which ones to look at.
 */
export const listedAsWanted = (wanted: Wanted, paused: boolean, listed: ScheduleSummary): boolean =>
  listed.state.paused === paused &&
  listed.action?.workflowType === wanted.action.workflowType &&
  listed.spec !== undefined &&
  JSON.stringify(timing(wanted.spec)) === JSON.stringify(timing(listed.spec)) &&
  pairsOf(wanted.typedSearchAttributes).join() === pairsOf(listed.typedSearchAttributes).join();
