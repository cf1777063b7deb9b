import type { CapturedEvent } from '../captured-event.ts';
import type { PersonNotice } from '../persons/notice.ts';
import type { SharedChunk } from './chunks.ts';
import { EventsRefusedError } from './errors.ts';
import { type RowHead, RowHeads } from './row-heads.ts';
import { cleanText, propertiesText } from './text.ts';

/** An event on its way into a table: what costs most is done, what is known only in the transaction is not. */
export interface PendingEvent {
  readonly projectId: number;
  /** What persons and groups follow from; of an anonymous event without groups, most is left out. */
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
  /** Where the heads of the events stand; held until the request is answered. */
  readonly chunks: readonly SharedChunk[];
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
  if (profile !== false || groups !== undefined) return event;
  // Written out, which is several times as quick as a spread.
  return {
    index: event.index,
    uuid: '',
    event: event.event,
    distinct_id: event.distinct_id,
    properties: OF_NOBODY,
    timestamp: event.timestamp,
    received_at: event.received_at,
    ip: undefined,
    historical: event.historical,
  };
}

const heads = new RowHeads();

function textsOf({ properties }: CapturedEvent, index: number) {
  const { $elements_chain: chain } = properties;
  const elementsChain = typeof chain === 'string' ? cleanText(chain) : '';
  try {
    return { properties: propertiesText(properties, elementsChain !== ''), elementsChain };
  } catch (error) {
    // JSON.stringify recurses; a BigInt or a cycle can only come from our own code.
    throw new EventsRefusedError(`The properties of the event at index ${index} cannot be stored as JSON.`, {
      cause: error,
    });
  }
}

/** What a request needs to wait for its commit. The chunks are held until they are released. */
export function prepare(
  projectId: number,
  events: readonly CapturedEvent[],
): Pick<PendingRequest, 'events' | 'chunks' | 'bytes'> {
  const chunks: SharedChunk[] = [];
  let bytes = 0;
  try {
    const pending = events.map((event, index): PendingEvent => {
      const head = heads.write(projectId, event, textsOf(event, index), chunks);
      if (!head) throw new EventsRefusedError(`The event at index ${index} has a uuid that is none.`);
      bytes += OVERHEAD + head.to - head.from;
      return { projectId, event: remains(event), head };
    });
    return { events: pending, chunks, bytes };
  } catch (error) {
    for (const chunk of chunks) chunk.release();
    throw error;
  }
}
