import { readSealedWeeks } from '../../db/event-spans.ts';
import { type EventPage, type EventQuery, listEvents } from '../../db/events.ts';
import type { Asker } from '../../db/turns.ts';
import { faultOf } from '../reads/rows.ts';
import type { EventConditions } from '../rules/request.ts';
import { compile, type QueryDependencies } from './ask.ts';
import { refusing } from './refusing.ts';

/** Which page of events is read. */
export type PageOfEvents = Omit<EventQuery, 'projectId' | 'event' | 'distinctId' | 'personId' | 'source'>;

/** Lists the events that pass conditions in HogQL, as they are stored. Throws a refusal if a condition is wrong. */
export const listEventsWhere = (
  deps: QueryDependencies,
  asker: Asker,
  conditions: EventConditions,
  page: PageOfEvents,
): Promise<EventPage> =>
  refusing(async () => {
    const { after, before } = page;
    const source = await compile(deps, asker, {
      kind: 'EventSource',
      ...conditions,
      span: { after, before },
    });
    const { projectId, signal } = asker;
    const weeks = await readSealedWeeks(deps.pool, projectId);
    return listEvents(deps.reader, { ...page, projectId, source, weeks }, signal).catch((error: unknown) => {
      throw faultOf(error);
    });
  });
