import { uuidBytes } from '../../db/uuid-bytes.ts';
import type { CapturedEvent } from '../captured-event.ts';
import type { PersonNotice } from '../persons/notice.ts';
import { EventsRefusedError } from './errors.ts';
import { cleanText, propertiesText } from './text.ts';

/** An event on its way into a table: what costs most is done, what is known only in the transaction is not. */
export interface PendingEvent {
  readonly projectId: number;
  readonly event: CapturedEvent;
  /** `event.properties` as the JSON that is stored. */
  readonly properties: string;
  readonly elementsChain: string;
  /** The 16 bytes of the uuid, and their first 48 bits as a number to sort by. */
  readonly uuid: Uint8Array;
  readonly prefix: number;
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

/** Columns besides the texts of the event. */
const ROW_OVERHEAD = 220;
const KEY_BYTES = 16;
const PREFIX_SCALE = 0x10000;

export function prepare(projectId: number, events: readonly CapturedEvent[]) {
  // One allocation for all ids of a request.
  const uuids = new Uint8Array(events.length * KEY_BYTES);
  const view = new DataView(uuids.buffer);
  let bytes = 0;
  const pending = events.map((event, index): PendingEvent => {
    const offset = index * KEY_BYTES;
    if (!uuidBytes(event.uuid, uuids, offset)) {
      throw new EventsRefusedError(`The event at index ${index} has a uuid that is none.`);
    }
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
    bytes +=
      ROW_OVERHEAD + properties.length + elementsChain.length + event.event.length + event.distinct_id.length;
    return {
      projectId,
      event,
      properties,
      elementsChain,
      uuid: uuids.subarray(offset, offset + KEY_BYTES),
      prefix: view.getUint32(offset) * PREFIX_SCALE + view.getUint16(offset + 4),
    };
  });
  return { events: pending, bytes };
}
