import { EVENT_COLUMNS } from '../../db/event-writes.ts';
import type { CapturedEvent } from '../captured-event.ts';
import { storableTime } from '../storable-time.ts';
import { CHUNK_BYTES, SharedChunk } from './chunks.ts';
import { FieldWriter, textRoom } from './fields.ts';
import { cleanText } from './text.ts';

const FIXED_BYTES = 256;
const COUNT_BYTES = 2;
const KEY_BYTES = 16;
/** Project, uuid and timestamp, each with its length: what a row of `event_ids` is made of. */
const ID_BYTES = 8 + 4 + KEY_BYTES + 12;
const UUID_AT = COUNT_BYTES + 8 + 4;
const PREFIX_SCALE = 0x10000;

/** The beginning of an event's row: all but what only the transaction knows. It stands among others in `bytes`. */
export interface RowHead {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
  /** The first 48 bits of the uuid, to sort by. */
  readonly prefix: number;
}

const room = (value: unknown): number => (typeof value === 'string' ? textRoom(value) : 0);

/** The 16 bytes of the event's uuid begin here in its head's `bytes`. */
const uuidAt = (head: RowHead) => head.from + UUID_AT;

/** From where to where the columns of `event_ids` stand in the head's `bytes`. */
export const idFields = ({ from }: RowHead): [from: number, to: number] => [
  from + COUNT_BYTES,
  from + COUNT_BYTES + ID_BYTES,
];

export function compareUuids(one: RowHead, other: RowHead): number {
  if (one.prefix !== other.prefix) return one.prefix - other.prefix;
  const [a, b] = [uuidAt(one), uuidAt(other)];
  for (let index = 6; index < KEY_BYTES; index += 1) {
    const difference = (one.bytes[a + index] as number) - (other.bytes[b + index] as number);
    if (difference !== 0) return difference;
  }
  return 0;
}

export function uuidOf(head: RowHead): Buffer {
  const at = uuidAt(head);
  return head.bytes.subarray(at, at + KEY_BYTES);
}

/**
 * Writes heads one behind the other into chunks. An event that waits as bytes is nothing to the garbage collector;
 * as text it would be copied by it, more than once when much waits.
 */
export class RowHeads extends FieldWriter {
  #shared: SharedChunk;

  constructor() {
    const shared = new SharedChunk(0);
    super(shared.bytes);
    this.#shared = shared;
  }

  /**
   * Answers undefined when the event's uuid is none. The chunk of the head is held for `holds`, unless it is held
   * already; who waits for the commit lets go of it then.
   */
  write(
    projectId: number,
    event: CapturedEvent,
    texts: { properties: string; elementsChain: string },
    holds: SharedChunk[],
  ): RowHead | undefined {
    const { properties, elementsChain: chain } = texts;
    const { $session_id: session, $window_id: window } = event.properties;
    let size = FIXED_BYTES + textRoom(event.event) + textRoom(event.distinct_id) + textRoom(properties);
    size += textRoom(chain) + room(session) + room(window);
    if (this.at + size > this.chunk.length) this.#begin(size);
    const from = this.at;
    this.int16(EVENT_COLUMNS.length);
    this.intField(projectId);
    if (!this.uuidField(event.uuid)) {
      this.at = from;
      return undefined;
    }
    this.timestampField(storableTime(event));
    this.timestampField(event.received_at);
    this.booleanField(event.historical);
    this.textField(cleanText(event.event));
    this.textField(cleanText(event.distinct_id));
    this.textField(properties);
    this.optionalTextField(session);
    this.optionalTextField(window);
    this.textField(chain);
    if (holds.at(-1) !== this.#shared) {
      this.#shared.hold();
      holds.push(this.#shared);
    }
    const bytes = this.chunk;
    const uuid = from + UUID_AT;
    const prefix = bytes.readUInt32BE(uuid) * PREFIX_SCALE + bytes.readUInt16BE(uuid + 4);
    const head = { bytes, from, to: this.at, prefix };
    // One that was made for a large event is not to be kept until the next one comes.
    if (bytes.length > CHUNK_BYTES) this.#begin(0);
    return head;
  }

  #begin(size: number): void {
    const next = new SharedChunk(size);
    this.#shared.release();
    this.#shared = next;
    this.chunk = next.bytes;
    this.at = 0;
  }
}
