import { ID_COLUMNS } from '../../db/event-writes.ts';
import { CopyBytes } from './bytes.ts';
import { textRoom } from './fields.ts';
import type { PendingEvent } from './pending.ts';
import type { PersonOfEvent } from './persons.ts';
import { idFields } from './row-heads.ts';

const GROUPS = 5;
const FIXED_BYTES = 128;
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
    let size = FIXED_BYTES + head.to - head.from + textRoom(person.properties);
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
