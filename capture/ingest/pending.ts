import type { CapturedEvent } from '../captured-event.ts';
import type { PersonNotice } from '../persons/notice.ts';
import { EventsRefusedError } from './errors.ts';
import { type RowHead, RowHeads } from './row-heads.ts';
import { cleanText, propertiesText } from './text.ts';

/** An event on its way into a table: what costs most is done, what is known only in the transaction is not. */
export interface PendingEvent {
  readonly projectId: number;
  /** What is still to be known of the event; its properties only as far as persons and groups may follow from them. */
  readonly event: CapturedEvent;
  readonly head: RowHead;
}

export interface Submitted {
  stored: number;
  duplicates: number;
  /** What events wanted of persons or groups and did not get, with their indexes in the request. */
  notices?: (PersonNotice & { index: number })[];
}

/** The events of one request and its answer. Stored together or not at all. */
export interface PendingRequest {
  readonly events: PendingEvent[];
  /** About what they take in memory and on the wire. */
  readonly bytes: number;
  readonly submittedAt: number;
  resolve(result: Submitted): void;
  reject(error: Error): void;
}

/** Columns besides the head, and what stays of the event itself. */
const OVERHEAD = 128;
/** All that matters of the properties of an event that is nobody's. */
const OF_NOBODY = Object.freeze({ $process_person_profile: false });

/** The event without what is not needed any more once its row is begun. */
function remains(event: CapturedEvent): CapturedEvent {
  const { $process_person_profile: profile, $groups: groups } = event.properties;
  return profile === false && groups === undefined ? { ...event, properties: OF_NOBODY } : event;
}

const heads = new RowHeads();

export function prepare(projectId: number, events: readonly CapturedEvent[]) {
  let bytes = 0;
  const pending = events.map((event, index): PendingEvent => {
    const chain = event.properties.$elements_chain;
    const elementsChain = typeof chain === 'string' ? cleanText(chain) : '';
    let properties: string;
    try {
      properties = propertiesText(event.properties, elementsChain !== '');
    } catch (error) {
      // JSON.stringify recurses; a BigInt or a cycle can only come from our own code.
      throw new EventsRefusedError(
        `The properties of the event at index ${index} cannot be stored as JSON.`,
        {
          cause: error,
        },
      );
    }
    const head = heads.write(projectId, event, properties, elementsChain);
    if (!head) throw new EventsRefusedError(`The event at index ${index} has a uuid that is none.`);
    bytes += OVERHEAD + head.to - head.from;
    return { projectId, event: remains(event), head };
  });
  return { events: pending, bytes };
}
