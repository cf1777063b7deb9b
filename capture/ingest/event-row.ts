import { EVENT_ROW_COLUMNS, ID_COLUMNS } from '../../db/event-writes.ts';
import { nextTurn } from '../../db/loop-turns.ts';
import { cleanText } from '../../values/texts.ts';
import { type CapturedEvent, storableTime } from '../captured-event.ts';
import type { NameWatcher } from '../definitions/definitions.ts';
import type { SeenName } from '../definitions/names.ts';
import { CALLED_FLAG, calledFlagOf } from '../flag-calls.ts';
import type { EventFollower, Look } from '../follower.ts';
import type { Actor } from '../persons/people.ts';
import { CHUNK_BYTES, CopyBytes, FieldWriter, SharedChunk, textRoom } from './copy-bytes.ts';
import { EventsRefusedError } from './errors.ts';

/** Escapes that JSON allows, but that `->>` of Postgres cannot read. */
const UNREADABLE_ESCAPE = /\\u(?:0000|d[89a-f])/;

/** A copy of a value whose texts are clean. Parsing has cleaned most texts already; what transformations add it has not. */
function cleanCopy(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return value.map(cleanCopy);
  if (typeof value === 'object' && value !== null) {
    if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [cleanText(key), cleanCopy(entry)]),
    );
  }
  return value;
}

/** The JSON of properties, or what is stored instead where Postgres could not read it. */
function readableText(text: string, properties: Record<string, unknown>): string {
  // Both are rare. The first search is cheap, and most texts need no second one.
  if (text.includes('\\u') && UNREADABLE_ESCAPE.test(text)) return JSON.stringify(cleanCopy(properties));
  return text;
}

/** The properties as JSON that Postgres can store and read. */
export function propertiesText(properties: Record<string, unknown>): string {
  return readableText(JSON.stringify(properties), properties);
}

/** At most what the fields of a head take besides their texts. */
const HEAD_BYTES = 256;
const COUNT_BYTES = 2;
const KEY_BYTES = 16;
/** The fields of a row of `event_ids`, each with its length: project, uuid and timestamp. */
const ID_BYTES = 8 + 4 + KEY_BYTES + 12;
const UUID_AT = COUNT_BYTES + 8 + 4;
const PREFIX_SCALE = 0x10000;

/**
 * The first fields of an event's row in COPY BINARY, written while the request is prepared. The transaction adds the
 * fields that only it knows. `bytes` also holds the heads of other events.
 */
export interface RowHead {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
  /** The first 48 bits of the uuid, for sorting. */
  readonly prefix: number;
}

const room = (value: unknown): number => (typeof value === 'string' ? textRoom(value) : 0);

/** Where the 16 bytes of the event's uuid begin in `bytes`. */
const uuidAt = (head: RowHead) => head.from + UUID_AT;

/** Where the fields for `event_ids` begin and end in `bytes`. */
const idFields = ({ from }: RowHead): [from: number, to: number] => [
  from + COUNT_BYTES,
  from + COUNT_BYTES + ID_BYTES,
];

/** The bytes of a key: project, uuid and timestamp as in a row, without the lengths of the fields. */
export const EVENT_KEY_BYTES = 4 + KEY_BYTES + 8;

/** Writes the key of an event. */
export function writeKey({ bytes, from }: RowHead, target: Buffer, at: number): void {
  const project = from + COUNT_BYTES + 4;
  bytes.copy(target, at, project, project + 4);
  const uuid = from + UUID_AT;
  bytes.copy(target, at + 4, uuid, uuid + KEY_BYTES);
  const timestamp = uuid + KEY_BYTES + 4;
  bytes.copy(target, at + 4 + KEY_BYTES, timestamp, timestamp + 8);
}

/** Compares events by their uuids. */
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
 * Writes heads one after the other into chunks. The garbage collector has no work with an event that waits as bytes.
 * Texts it would copy, several times when many events wait.
 */
class RowHeads extends FieldWriter {
  #shared: SharedChunk;

  constructor() {
    const shared = new SharedChunk(0);
    super(shared.bytes);
    this.#shared = shared;
  }

  /**
   * Returns undefined if the event's uuid is not a uuid. Adds the head's chunk to `holds` and holds it, unless it is the
   * last one there. The request releases its chunks after the commit.
   */
  write(
    projectId: number,
    event: CapturedEvent,
    texts: { properties: string; elementsChain: string; transformations: string | undefined },
    holds: SharedChunk[],
  ): RowHead | undefined {
    const { properties, elementsChain: chain, transformations } = texts;
    const { $session_id: session, $window_id: window } = event.properties;
    let size = HEAD_BYTES + textRoom(event.event) + textRoom(event.distinct_id) + textRoom(properties);
    size += textRoom(chain) + room(session) + room(window) + room(transformations);
    if (this.at + size > this.chunk.length) this.#begin(size);
    const from = this.at;
    this.int16(EVENT_ROW_COLUMNS.length);
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
    this.optionalTextField(transformations);
    if (holds.at(-1) !== this.#shared) {
      this.#shared.hold();
      holds.push(this.#shared);
    }
    const bytes = this.chunk;
    const uuid = from + UUID_AT;
    const prefix = bytes.readUInt32BE(uuid) * PREFIX_SCALE + bytes.readUInt16BE(uuid + 4);
    const head = { bytes, from, to: this.at, prefix };
    // A chunk for one large event is not kept until the next event comes.
    if (bytes.length > CHUNK_BYTES) this.#begin(0);
    return head;
  }

  /** The next head goes into a new chunk, so that the last one can be given away. */
  endChunk(): void {
    this.#begin(0);
  }

  #begin(size: number): void {
    const next = new SharedChunk(size);
    this.#shared.release();
    this.#shared = next;
    this.chunk = next.bytes;
    this.at = 0;
  }
}

/** An event that waits for its transaction. The expensive part of its row is written already. */
export interface PendingEvent {
  readonly projectId: number;
  /** Persons and groups are derived from it. An anonymous event without groups keeps only a few of its fields. */
  readonly event: CapturedEvent;
  readonly head: RowHead;
  /** What a follower has found out about the whole event. */
  readonly look: Look | undefined;
}

/** After so many events, others have their turn. Only a single large request has more in one transaction. */
export const MANY = 5_000;

/** The events of one request, ready for a transaction. All of them are stored, or none. */
export interface PreparedEvents {
  readonly events: PendingEvent[];
  /** The events in the order of their uuids, if another thread has sorted them. Equal ones are in the order of the events. */
  readonly sorted?: readonly PendingEvent[];
  /** The chunks with the heads of the events. Whoever answers the request releases them. */
  readonly chunks: readonly SharedChunk[];
  /** About how much the events take in memory and on the wire. */
  readonly bytes: number;
  /** The names in the events, if another thread has seen them. */
  readonly names?: readonly SeenName[];
}

/** After so many bytes of heads, others get their turn. */
const SLICE_BYTES = 512 * 1024;
/** About how much an event takes besides its head: the other columns, and the event itself. */
const OVERHEAD = 128;
/** The only property that still matters in most anonymous events without groups. */
export const OF_NOBODY = Object.freeze({ $process_person_profile: false });

/** The fields of an event that still matter after its head is written. */
export type EventRemains = Pick<
  CapturedEvent,
  'index' | 'event' | 'distinct_id' | 'properties' | 'timestamp' | 'received_at' | 'historical'
>;

/** Whether the event has neither a person nor groups, so that no property matters after its head is written. */
export function isOfNobody({ properties }: CapturedEvent): boolean {
  return properties.$process_person_profile === false && properties.$groups === undefined;
}

/** An event of which only the remains are left. */
export function eventOf(remains: EventRemains, properties = remains.properties): CapturedEvent {
  // An object literal is several times faster than a spread.
  return {
    index: remains.index,
    uuid: '',
    event: remains.event,
    distinct_id: remains.distinct_id,
    properties,
    timestamp: remains.timestamp,
    received_at: remains.received_at,
    ip: undefined,
    historical: remains.historical,
  };
}

/** The event without the values that only the head needed. */
function remains(event: CapturedEvent): CapturedEvent {
  return isOfNobody(event) ? eventOf(event, propertiesOfNobody(event)) : event;
}

/** What still matters of the properties of an event that has neither a person nor groups. */
export function propertiesOfNobody(event: CapturedEvent): Readonly<Record<string, unknown>> {
  const flag = calledFlagOf(event);
  return flag === undefined ? OF_NOBODY : { ...OF_NOBODY, [CALLED_FLAG]: flag };
}

const heads = new RowHeads();

interface EventTexts {
  /** The properties without the chain of elements, which has its own column. */
  readonly kept: Record<string, unknown>;
  readonly elementsChain: string;
  readonly transformations: string | undefined;
  properties: string;
  isReadable: boolean;
  /** Whether something else is stored than what came. */
  isChanged: boolean;
}

function textsOf({ properties, transformations: changes }: CapturedEvent, index: number): EventTexts {
  const { $elements_chain: chain } = properties;
  const elementsChain = typeof chain === 'string' ? cleanText(chain) : '';
  const kept = elementsChain === '' ? properties : { ...properties, $elements_chain: undefined };
  try {
    // Names of properties can hold what Postgres cannot read.
    const transformations = changes && JSON.stringify(cleanCopy(changes));
    const text = JSON.stringify(kept);
    return { kept, elementsChain, transformations, properties: text, isReadable: false, isChanged: false };
  } catch (error) {
    // JSON.stringify fails on values that nest too deep. A BigInt or a cycle could only come from our own code.
    throw new EventsRefusedError(`The properties of the event at index ${index} cannot be stored as JSON.`, {
      cause: error,
    });
  }
}

/** Those who see the whole events, before only what matters for persons and groups is left of them. */
export interface EventSpectators {
  follower?: Pick<EventFollower, 'look'> | undefined;
  names?: Pick<NameWatcher, 'look'> | undefined;
}

/** Begins the rows of a request's events, slice by slice. */
class Preparation {
  readonly #projectId: number;
  readonly #given: readonly CapturedEvent[];
  readonly #chunks: SharedChunk[] = [];
  readonly #events: PendingEvent[] = [];
  #bytes = 0;
  /** The texts of an event that is so large that each step of its row takes a turn of its own. */
  #begun: EventTexts | undefined;
  readonly #spectators: EventSpectators;

  constructor(projectId: number, events: readonly CapturedEvent[], spectators: EventSpectators) {
    this.#projectId = projectId;
    this.#given = events;
    this.#spectators = spectators;
  }

  /** Writes the next slice. Returns what is prepared after the last one. */
  next(): PreparedEvents | undefined {
    const end = this.#bytes + SLICE_BYTES;
    try {
      while (this.#events.length < this.#given.length && this.#bytes < end) if (!this.#one()) break;
    } catch (error) {
      for (const chunk of this.#chunks) chunk.release();
      throw error;
    }
    if (this.#events.length < this.#given.length) return undefined;
    return { events: this.#events, chunks: this.#chunks, bytes: this.#bytes };
  }

  /** Begins the next row. Returns false if that takes another turn. */
  #one(): boolean {
    const index = this.#events.length;
    const event = this.#given[index] as CapturedEvent;
    const texts = this.#begun ?? textsOf(event, index);
    if (!this.#begun && texts.properties.length + texts.elementsChain.length > SLICE_BYTES) {
      this.#begun = texts;
      return false;
    }
    if (!texts.isReadable) {
      const text = readableText(texts.properties, texts.kept);
      texts.isChanged = text !== texts.properties;
      texts.properties = text;
      texts.isReadable = true;
      if (this.#begun) return false;
    }
    this.#begun = undefined;
    const head = heads.write(this.#projectId, event, texts, this.#chunks);
    if (!head) throw new EventsRefusedError(`The event at index ${index} has a uuid that is none.`);
    this.#bytes += OVERHEAD + head.to - head.from;
    const { follower, names } = this.#spectators;
    const look = texts.isChanged ? undefined : follower?.look(this.#projectId, event);
    names?.look(this.#projectId, event);
    this.#events.push({ projectId: this.#projectId, event: remains(event), head, look });
    return true;
  }
}

/**
 * Begins the rows of a request's events. Between the slices of many events, other requests get their turn. The caller
 * releases the chunks.
 */
export function prepare(
  projectId: number,
  events: readonly CapturedEvent[],
  spectators: EventSpectators = {},
): PreparedEvents | Promise<PreparedEvents> {
  const preparation = new Preparation(projectId, events, spectators);
  return preparation.next() ?? prepareRest(preparation);
}

/** Begins the rows of a request's events in chunks that no other request shares. */
export function prepareAlone(projectId: number, events: readonly CapturedEvent[]): PreparedEvents {
  const preparation = new Preparation(projectId, events, {});
  let prepared = preparation.next();
  while (!prepared) prepared = preparation.next();
  heads.endChunk();
  return prepared;
}

async function prepareRest(preparation: Preparation): Promise<PreparedEvents> {
  for (;;) {
    await nextTurn();
    const prepared = preparation.next();
    if (prepared) return prepared;
  }
}

/** The person and the groups of an event, as they are written into its row. */
export interface PersonOfEvent extends Actor {
  /** The keys of the event's groups, by the index of their type. Absent if the event has no groups. */
  groups?: readonly (string | null)[] | undefined;
}

const GROUPS = 5;
/** At most what the fields behind the head take besides their texts. */
const TAIL_BYTES = 128;
const ID_ROW_BYTES = 64;

/** Writes rows of `events` and hands them to `flush` chunk by chunk. `stamp` holds the 8 bytes of inserted_at. */
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

/** Writes rows of `event_ids`. The events come in the order of their keys. */
export class IdRows {
  readonly #bytes: CopyBytes;

  constructor(flush: (chunk: Buffer) => void) {
    this.#bytes = new CopyBytes(flush);
  }

  write({ head }: PendingEvent): void {
    const bytes = this.#bytes;
    bytes.reserve(ID_ROW_BYTES);
    bytes.int16(ID_COLUMNS.length);
    bytes.piece(head.bytes, ...idFields(head));
  }

  end(): void {
    this.#bytes.end();
  }
}
