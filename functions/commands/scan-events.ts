import { type EventRange, eventsWithin, type RangeEvent } from '../rows/events.ts';
import type { MaskingRule } from '../rules/masking.ts';
import type { OtherFacts, StoredEvent } from '../rules/stored-event.ts';
import { Tally } from '../rules/tally.ts';
import type { FunctionTypeName } from '../rules/types.ts';
import type { Runner } from '../runner.ts';
import type { Trigger } from '../scan.ts';
import { lookUpListed } from '../static-cohorts.ts';
import type { Read } from './sample-event.ts';

/** A version of a function whose effect on stored events is asked for. */
export interface ScannedVersion extends Trigger {
  rule: MaskingRule | null;
}

export interface EventScan extends EventRange {
  type: FunctionTypeName;
  facts: OtherFacts;
  versions: readonly ScannedVersion[];
  /** The most events that are looked at. */
  mostEvents: number;
  /** When to stop, in milliseconds of `performance.now()`. */
  deadline: number;
}

export interface ScannedEvents {
  searched: number;
  /** Events that are left out because of their size. */
  tooLarge: number;
  /** Whether all events of the range were looked at. If not, those before `oldest` were not. */
  isComplete: boolean;
  oldest: string | null;
  tally: Tally;
}

const PAGE = 2_000;
/** The most events that go to a thread at once. */
const AT_ONCE = 250;

/**
 * Looks at the stored events of a time range, newest first, and finds out which of them each version of a function would
 * run for.
 */
export async function scanEvents(
  { runner, read }: { runner: Runner; read: Read },
  scan: EventScan,
  signal?: AbortSignal,
): Promise<ScannedEvents> {
  const { facts, type, versions, mostEvents, deadline } = scan;
  const projectId = facts.project.id;
  const tally = new Tally(versions.map(({ rule }) => rule));
  const scanned: ScannedEvents = { searched: 0, tooLarge: 0, isComplete: false, oldest: null, tally };
  const inTime = () => performance.now() < deadline;

  /** Asks about events, as far as the time reaches. Returns how many it asked about. */
  const ask = async (events: readonly StoredEvent[]): Promise<number> => {
    const listed = await lookUpListed(
      read,
      projectId,
      versions.map(({ filters }) => filters),
      events.map((one) => one.person_id),
    );
    let done = 0;
    while (done < events.length && inTime()) {
      const next = events
        .slice(done, done + AT_ONCE)
        .map((one) => ({ ...one, listed_in: listed(one.person_id) }));
      const answers = await runner.scan(
        projectId,
        {
          type,
          facts,
          events: next,
          triggers: versions.map(({ filters, masking }) => ({ filters, masking })),
        },
        signal,
      );
      for (const [index, answer] of answers.entries()) tally.add(next[index] as StoredEvent, answer);
      done += answers.length;
    }
    return done;
  };

  /** Reads what comes after an event, of which `left` may still be looked at. Without any left, one says that there is more. */
  const readAfter = (last: RangeEvent | null, left: number): Promise<RangeEvent[]> => {
    const page = read((client) => eventsWithin(client, projectId, scan, last, Math.min(PAGE, left) || 1));
    // The loop hears of an error when it comes to this page.
    page.catch(() => undefined);
    return page;
  };

  let position: RangeEvent | null = null;
  let left = mostEvents;
  let next = readAfter(null, left);
  while (inTime()) {
    const page = await next;
    scanned.isComplete = page.length === 0;
    if (scanned.isComplete || left === 0) break;
    left -= page.length;
    // The next page is read while a thread looks at this one.
    next = readAfter(page.at(-1) as RangeEvent, left);
    const wanted = page.flatMap(({ found }) => found ?? []);
    const missed = wanted[await ask(wanted)];
    // The page ends before the first event that there was no time for.
    const looked = missed
      ? page.slice(
          0,
          page.findIndex(({ found }) => found === missed),
        )
      : page;
    scanned.searched += looked.length;
    scanned.tooLarge += looked.filter(({ isTooLarge }) => isTooLarge).length;
    position = looked.at(-1) ?? position;
    scanned.oldest = position?.timestamp ?? null;
    if (missed) break;
  }
  // Nothing goes on after the answer.
  await next.catch(() => undefined);
  tally.mask();
  return scanned;
}
