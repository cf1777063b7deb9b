import type { CalendarSpecDescription, Client, ScheduleDescription } from '@temporalio/client';
import { type Cadence, WEEKDAYS } from '../../intervals/index.ts';
import { isKnownZone } from '../../values/zones.ts';
import { EXPORT_KIND, searchAttributes } from '../../workflows/names.ts';
import { describeSchedule } from './describe.ts';
import { outOfStep } from './next-times.ts';

const AT_ONCE = 20;

/** A schedule that does not fire when intervals end. */
export interface OutOfStep {
  scheduleId: string;
  what: string;
}

/**
 * Compares when the schedules of days and weeks fire next with when these end. What cuts them is read from the schedules, so
 * nothing else is needed. Looks at as many schedules as `most`.
 */
export async function findOutOfStep(
  client: Client,
  taskQueue: string,
  most: number,
): Promise<{ seen: number; differences: OutOfStep[] }> {
  const differences: OutOfStep[] = [];
  let seen = 0;
  const look = async (scheduleId: string) => {
    const found = await describeSchedule(client.schedule.getHandle(scheduleId));
    const cadence = found && cadenceOfSpec(found.spec);
    if (!found || !cadence || found.action.taskQueue !== taskQueue) return;
    seen += 1;
    const what = isKnownZone(cadence.timezone)
      ? differenceIn(cadence, found)
      : `its time zone ${cadence.timezone} is unknown`;
    if (what !== undefined) differences.push({ scheduleId, what });
  };
  const ids: string[] = [];
  const query = `${searchAttributes.kind.name} = '${EXPORT_KIND}'`;
  for await (const { scheduleId, spec } of client.schedule.list({ query })) {
    if (spec?.calendars?.length) ids.push(scheduleId);
    if (ids.length === most) break;
  }
  while (ids.length > 0) await Promise.all(ids.splice(0, AT_ONCE).map(look));
  return { seen, differences };
}

/** Says how the firing times of a schedule differ from the ends of the intervals of a cadence. */
export function differenceIn(cadence: Cadence, { spec, info }: ScheduleDescription): string | undefined {
  return outOfStep(
    cadence,
    {
      next: info.nextActionTimes.map((one) => one.getTime()),
      jitter: Number(spec.jitter ?? 0),
      startAt: spec.startAt?.getTime(),
      endAt: spec.endAt?.getTime(),
    },
    Date.now(),
  );
}

/** Reads from a schedule how its export is cut. Undefined: not into days or weeks. */
function cadenceOfSpec({ calendars, timezone }: ScheduleDescription['spec']): Cadence | undefined {
  // The first one: an older version lists exceptions after it.
  const [calendar] = calendars ?? [];
  const offsetHour = calendar?.hour[0]?.start;
  if (calendar === undefined || offsetHour === undefined) return undefined;
  const offsetDay = weekdayOf(calendar);
  return {
    ...{ interval: offsetDay === undefined ? 'day' : 'week', timezone: timezone || 'UTC' },
    ...{ offsetHour, offsetDay: offsetDay ?? 0 },
  };
}

/** Returns the only weekday of a calendar. */
function weekdayOf({ dayOfWeek: [first, ...others] }: CalendarSpecDescription): number | undefined {
  return first && others.length === 0 && first.start === first.end
    ? WEEKDAYS.indexOf(first.start)
    : undefined;
}
