import { EVENT_COLUMNS, ID_COLUMNS } from '../../db/event-writes.ts';
import { storableTime } from '../storable-time.ts';
import { CopyBytes, textRoom } from './bytes.ts';
import type { PendingEvent } from './pending.ts';
import type { PersonOfEvent } from './persons.ts';
import { cleanText } from './text.ts';

const GROUPS = 5;
const FIXED_BYTES = 256;
const ID_ROW_BYTES = 64;
function optionalText(bytes: CopyBytes, value: unknown): void {
  if (typeof value !== 'string' || value === '') bytes.nullField();
  else bytes.textField(cleanText(value));
}

const room = (value: unknown): number => (typeof value === 'string' ? textRoom(value) : 0);

/** Rows of `events`, handed to `flush` chunk by chunk. `stamp`: the 8 bytes of inserted_at. */
export class EventRows {
  readonly #bytes: CopyBytes;
  readonly #stamp: Uint8Array;

  constructor(stamp: Uint8Array, flush: (chunk: Buffer) => void) {
    this.#stamp = stamp;
    this.#bytes = new CopyBytes(flush);
  }

  write(pending: PendingEvent, person: PersonOfEvent): void {
    const { event, properties, elementsChain } = pending;
    const { $session_id: session, $window_id: window } = event.properties;
    const bytes = this.#bytes;
    let size = FIXED_BYTES + textRoom(event.event) + textRoom(event.distinct_id) + textRoom(properties);
    size += room(session) + room(window) + textRoom(elementsChain) + textRoom(person.properties);
    if (person.groups) for (const key of person.groups) size += room(key);
    bytes.reserve(size);

    bytes.int16(EVENT_COLUMNS.length);
    bytes.intField(pending.projectId);
    bytes.bytesField(pending.uuid);
    bytes.timestampField(storableTime(event));
    bytes.timestampField(event.received_at);
    bytes.bytesField(this.#stamp);
    bytes.booleanField(event.historical);
    bytes.textField(cleanText(event.event));
    bytes.textField(cleanText(event.distinct_id));
    bytes.textField(properties);
    optionalText(bytes, session);
    optionalText(bytes, window);
    bytes.textField(elementsChain);
    bytes.uuidField(person.id);
    bytes.textField(person.mode);
    bytes.textField(person.properties);
    for (let group = 0; group < GROUPS; group += 1) optionalText(bytes, person.groups?.[group]);
  }

  end(): void {
    this.#bytes.end();
  }
}

/** Rows of `event_ids`, for events in the order of their keys. */
export function writeIdRows(events: readonly PendingEvent[], flush: (chunk: Buffer) => void): void {
  const bytes = new CopyBytes(flush);
  for (const { projectId, uuid, event } of events) {
    bytes.reserve(ID_ROW_BYTES);
    bytes.int16(ID_COLUMNS.length);
    bytes.intField(projectId);
    bytes.bytesField(uuid);
    bytes.timestampField(storableTime(event));
  }
  bytes.end();
}
