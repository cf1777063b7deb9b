import { EVENT_COLUMNS, ID_COLUMNS } from '../../db/event-writes.ts';
import { type CapturedEvent, storableTime } from '../captured-event.ts';
import type { Actor } from '../persons/people.ts';
import { CHUNK_BYTES, CopyBytes, cleanText, FieldWriter, SharedChunk, textRoom } from './copy-bytes.ts';
import { EventsRefusedError } from './errors.ts';

const UNREADABLE_ESCAPE = /\\u(?:0000|d[89a-f])/;

function cleanValue(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return value.map(cleanValue);
  if (typeof value === 'object' && value !== null) {
    if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [cleanText(key), cleanValue(entry)]),
    );
  }
  return value;
}

/** Properties as JSON that Postgres stores and reads; the chain of elements has a column of its own. */
export function propertiesText(properties: Record<string, unknown>, withoutElementsChain: boolean): string {
  const kept = withoutElementsChain ? { ...properties, $elements_chain: undefined } : properties;
  const text = JSON.stringify(kept);
  // Such escapes are rare, and a backslash before "u" is nearly as rare: most texts are searched once.
  if (text.includes('\\u') && UNREADABLE_ESCAPE.test(text)) return JSON.stringify(cleanValue(kept));
  return text;
}

const HEAD_BYTES = 256;
const COUNT_BYTES = 2;
const KEY_BYTES = 16;
/** Project, uuid and timestamp, each with its length: what a row of `event_ids` is made of. */
const ID_BYTES = 8 + 4 + KEY_BYTES + 12;
const UUID_AT = COUNT_BYTES + 8 + 4;
const PREFIX_SCALE = 0x10000;

/** The beginning of an event's row: all but what only the transaction knows. It stands among others in `bytes`. */
interface RowHead {
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
const idFields = ({ from }: RowHead): [from: number, to: number] => [
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
class RowHeads extends FieldWriter {
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
    let size = HEAD_BYTES + textRoom(event.event) + textRoom(event.distinct_id) + textRoom(properties);
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

/** An event on its way into a table: what costs most is done, what is known only in the transaction is not. */
export interface PendingEvent {
  readonly projectId: number;
  /** What persons and groups follow from; of an anonymous event without groups, most is left out. */
  readonly event: CapturedEvent;
  readonly head: RowHead;
}

/** The events of one request. Stored together or not at all. */
export interface PreparedEvents {
  readonly events: PendingEvent[];
  /** Where the heads of the events stand; held until the request is answered. */
  readonly chunks: readonly SharedChunk[];
  /** About what they take in memory and on the wire. */
  readonly bytes: number;
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
export function prepare(projectId: number, events: readonly CapturedEvent[]): PreparedEvents {
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

/** The person of an event as it is written into the event's row. */
export interface PersonOfEvent extends Actor {
  /** Keys of the event's groups by the index of their type; absent: the event has none. */
  groups?: readonly (string | null)[] | undefined;
}

const GROUPS = 5;
const TAIL_BYTES = 128;
const ID_ROW_BYTES = 64;

/** Rows of `events`, handed to `flush` chunk by chunk. `stamp`: the 8 bytes of inserted_at. */
export class EventRows {
  readonly #bytes: CopyBytes;
  readonly #stamp: Uint8Array;

  constructor(stamp: Uint8Array, flush: (chunk: Buffer) => void) {
    this.#stamp = stamp;
    this.#bytes = new CopyBytes(flush);
  }

  write({ head }: PendingEvent, person: PersonOfEvent): void {
    const bytes = this.#bytes;
    let size = TAIL_BYTES + head.to - head.from + textRoom(person.properties);
    if (person.groups) for (const key of person.groups) if (key !== null) size += textRoom(key);
    bytes.reserve(size);

    bytes.piece(head.bytes, head.from, head.to);
    bytes.bytesField(this.#stamp);
    bytes.uuidField(person.id);
    bytes.textField(person.mode);
    bytes.textField(person.properties);
    for (let group = 0; group < GROUPS; group += 1) bytes.optionalTextField(person.groups?.[group]);
  }

  end(): void {
    this.#bytes.end();
  }
}

/** Rows of `event_ids`, for events in the order of their keys. */
export function writeIdRows(events: readonly PendingEvent[], flush: (chunk: Buffer) => void): void {
  const bytes = new CopyBytes(flush);
  for (const { head } of events) {
    bytes.reserve(ID_ROW_BYTES);
    bytes.int16(ID_COLUMNS.length);
    bytes.piece(head.bytes, ...idFields(head));
  }
  bytes.end();
}
