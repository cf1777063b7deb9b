import {
  type ScheduleDescription,
  type ScheduleOptions,
  ScheduleOverlapPolicy,
  type ScheduleSpec,
  type ScheduleSpecDescription,
  type ScheduleSummary,
} from '@temporalio/client';
import type { SearchAttributePair, TypedSearchAttributes } from '@temporalio/common';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import { cadenceOfRow } from '../../exports/rules/cadence.ts';
import { isOnce } from '../../exports/rules/once.ts';
import type { ExportRunInput } from '../../exports/temporal.ts';
import { jitterOf, scheduleTimes } from '../../intervals/index.ts';
import { tzif } from '../../values/tzif.ts';
import { ZONE_DATA_VERSION } from '../../values/zones.ts';
import { EXPORT_KIND, EXPORT_RUN, searchAttributes } from '../../workflows/names.ts';
import { plain, shortened } from '../summary.ts';
import { markedComment, markOf, mayStay, readMark } from './zone-data.ts';

/** The default of the server. Intervals that ended while Temporal was away are exported when it is back. */
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

const aboutOf = (row: Told): string =>
  `${row.model} ${isOnce(row) ? 'once' : `every ${row.interval.replace(/^every /, '')}`} to ${row.destination_type}: ${plain(row.name)}`;

/** Writes the summary of a workflow for the Temporal UI. It cuts off a long name. */
export function summaryOf(row: Told, what = 'Batch export'): string {
  return shortened(`${what} ${aboutOf(row)}`);
}

/** Returns the search attributes of a workflow of an export. */
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

/** Writes the note of a schedule for people who look at it in the Temporal UI. */
export const noteOf = (row: Told & Pick<BatchExportRow, 'paused' | 'last_paused_at'>): string =>
  row.paused
    ? `${summaryOf(row)}. Paused in Sluice${row.last_paused_at ? ` at ${row.last_paused_at}` : ''}. Unpause the batch export there.`
    : `${summaryOf(row)}. Kept by Sluice: changes made here are undone.`;

/**
 * Builds the schedule of an export. `start_at` and `end_at` bound when it fires, and both are inclusive. `zoneData` are the
 * clocks of its calendar, and `mark` says where they come from.
 */
export function scheduleOf(row: ExportScheduleRow, taskQueue: string, now: number) {
  const input: ExportRunInput = { exportId: row.id };
  const { clocks, calendars, intervals, timezone } = scheduleTimes(cadenceOfRow(row), now);
  const zoneData = clocks && tzif(clocks);
  const mark = zoneData && markOf(zoneData, ZONE_DATA_VERSION);
  return {
    zoneData,
    mark,
    spec: {
      calendars: calendars.map((one) => (mark ? { ...one, comment: markedComment(one.comment, mark) } : one)),
      ...{ intervals, timezone },
      jitter: jitterOf(row.id),
      ...(row.start_at === null ? {} : { startAt: new Date(row.start_at) }),
      ...(row.end_at === null ? {} : { endAt: new Date(row.end_at) }),
    },
    action: {
      type: 'startWorkflow' as const,
      workflowType: EXPORT_RUN,
      // The server appends the time at which the schedule fires: see `scheduledWorkflowId`.
      workflowId: row.id,
      taskQueue,
      args: [input],
      typedSearchAttributes: attributesOf(row),
      staticSummary: summaryOf(row),
    },
    // A slow run must not swallow the next one.
    policies: { overlap: ScheduleOverlapPolicy.ALLOW_ALL, catchupWindow: CATCHUP_WINDOW },
    typedSearchAttributes: attributesOf(row),
  } satisfies Omit<ScheduleOptions, 'scheduleId'> & Record<'zoneData' | 'mark', unknown>;
}

export type Wanted = ReturnType<typeof scheduleOf>;

interface Range {
  start: unknown;
  end: unknown;
}

/** Reads one value, or null for "any", from the ranges as which the server describes both. */
function single(ranges: readonly Range[]): unknown {
  const [first] = ranges;
  return ranges.length === 1 && first?.start === first?.end ? first?.start : null;
}

/** Returns when a schedule fires. The form is the same for a wanted schedule and for one that the server describes. */
function timing(spec: ScheduleSpec | ScheduleSpecDescription): unknown[] {
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

/** Writes what matters of a schedule as a text, to compare it. */
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

/** Answers whether a schedule fires when it should and does what it should. A pause makes no difference. */
export const sameSchedule = (wanted: Wanted, found: ScheduleDescription): boolean =>
  essence(wanted) === essence(found) &&
  found.state.remainingActions === undefined &&
  sameClocks(wanted, found);

/** Answers whether a schedule has the clocks that its calendar names, and those may stay. */
function sameClocks({ mark }: Wanted, found: ScheduleDescription): boolean {
  const { timezoneData } = found.raw.schedule?.spec ?? {};
  const has = timezoneData?.length ? timezoneData : undefined;
  if (mark === undefined) return has === undefined;
  const named = readMark(found.spec);
  if (named === undefined || has === undefined) return false;
  return markOf(has, named.version).sum === named.sum && mayStay(named, mark);
}

/**
 * Answers whether a schedule looks right in the list of all schedules. The list is a moment behind, leaves out long
 * specs and does not show what a schedule starts. It shows cheaply which schedules to compare in full.
 */
export const listedAsWanted = (wanted: Wanted, paused: boolean, listed: ScheduleSummary): boolean =>
  listed.state.paused === paused &&
  listed.action?.workflowType === wanted.action.workflowType &&
  listed.spec !== undefined &&
  JSON.stringify(timing(wanted.spec)) === JSON.stringify(timing(listed.spec)) &&
  (wanted.mark === undefined || mayStay(readMark(listed.spec), wanted.mark)) &&
  pairsOf(wanted.typedSearchAttributes).join() === pairsOf(listed.typedSearchAttributes).join();
