// Reads the binary rows of events that functions/rows/events.ts selects.
import { uuidText } from '../../db/uuid-bytes.ts';

const SIGNATURE_BYTES = 19;
const END = -1;
const EPOCH_2000 = 946_684_800_000;
const TWO_32 = 2 ** 32;
const NOWHERE: readonly number[] = [];

/** An event as Postgres sends it. Its texts are read when they are asked for. */
export class EventRow {
  readonly #bytes: Buffer;
  readonly #at: number[];

  constructor(bytes: Buffer, at: number[]) {
    this.#bytes = bytes;
    this.#at = at;
  }

  #int32(column: number): number {
    return this.#bytes.readInt32BE((this.#at[column] as number) + 4);
  }

  #text(column: number): string {
    const at = this.#at[column] as number;
    return this.#bytes.toString('utf8', at + 4, at + 4 + this.#bytes.readInt32BE(at));
  }

  #latin1(column: number): string {
    const at = this.#at[column] as number;
    return this.#bytes.toString('latin1', at + 4, at + 4 + this.#bytes.readInt32BE(at));
  }

  #uuid(column: number): string {
    const at = (this.#at[column] as number) + 4;
    return uuidText(this.#bytes.subarray(at, at + 16));
  }

  /** Microseconds since 2000. */
  #instant(column: number): number {
    const at = (this.#at[column] as number) + 4;
    return this.#bytes.readInt32BE(at) * TWO_32 + this.#bytes.readUInt32BE(at + 4);
  }

  get xid(): number {
    return this.#bytes.readUInt32BE((this.#at[0] as number) + 4);
  }
  get projectId(): number {
    return this.#int32(1);
  }
  get event(): string {
    return this.#text(2);
  }
  get uuid(): string {
    return this.#uuid(3);
  }
  get timestamp(): string {
    return isoOf(this.#instant(4));
  }
  /** Milliseconds since 1970. */
  get receivedAt(): number {
    return Math.floor(this.#instant(5) / 1_000) + EPOCH_2000;
  }
  /** Microseconds since 2000. */
  get storedAt(): number {
    return this.#instant(6);
  }
  get distinctId(): string {
    return this.#text(7);
  }
  get properties(): string {
    return this.#text(8);
  }
  /** The bytes of the JSON, each as one character: faster than the text, and the same where it is ASCII. */
  get propertyBytes(): string {
    return this.#latin1(8);
  }
  get elementsChain(): string {
    return this.#text(9);
  }
  get personId(): string {
    return this.#uuid(10);
  }
  get personMode(): string {
    return this.#text(11);
  }
  get personProperties(): string {
    return this.#text(12);
  }
  get personBytes(): string {
    return this.#latin1(12);
  }
  get groups(): string | null {
    return this.#bytes.readInt32BE(this.#at[13] as number) === -1 ? null : this.#text(13);
  }
  /** The static cohorts that list the person. They are a column only if somebody asks for them. */
  get listedIn(): readonly number[] {
    const at = this.#at[14];
    if (at === undefined || this.#bytes.readInt32BE(at) === -1) return NOWHERE;
    return this.#latin1(14).split(',').map(Number);
  }
  /** Writes project and uuid in 20 bytes. */
  writeId(target: Uint8Array, at: number): void {
    const [project, uuid] = [(this.#at[1] as number) + 4, (this.#at[3] as number) + 4];
    this.#bytes.copy(target, at, project, project + 4);
    this.#bytes.copy(target, at + 4, uuid, uuid + 16);
  }
  /** Project, uuid and timestamp in 28 bytes. */
  get key(): Buffer {
    const part = (column: number, size: number) => {
      const at = (this.#at[column] as number) + 4;
      return this.#bytes.subarray(at, at + size);
    };
    return Buffer.concat([part(1, 4), part(3, 16), part(4, 8)]);
  }
}

/** Writes microseconds since 2000 in ISO 8601, without a fraction that is zero. */
export function isoOf(microseconds: number): string {
  const second = Math.floor(microseconds / 1_000_000);
  const rest = microseconds - second * 1_000_000;
  const text = new Date(second * 1_000 + EPOCH_2000).toISOString().slice(0, -5);
  return rest === 0 ? `${text}Z` : `${text}.${String(rest).padStart(6, '0')}Z`;
}

export const KEY_BYTES = 28;
/** Project and uuid: the first bytes of a key. */
export const ID_BYTES = 20;

/** The project and the uuid of an event as one text. */
export const idOf = ({ projectId, uuid }: { projectId: number; uuid: string }): string =>
  `${projectId}:${uuid}`;

/** Reads ids of 20 bytes. */
export const idsOf = (bytes: Uint8Array): string[] => {
  const ids = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: ids.length / ID_BYTES }, (_, index) => {
    const at = index * ID_BYTES;
    return idOf({ projectId: ids.readInt32BE(at), uuid: uuidText(ids.subarray(at + 4, at + ID_BYTES)) });
  });
};

/** Reads keys of 28 bytes. */
export function keysOf(bytes: Buffer): { projectId: number; uuid: string; timestamp: string }[] {
  return Array.from({ length: bytes.length / KEY_BYTES }, (_, index) => {
    const at = index * KEY_BYTES;
    return {
      projectId: bytes.readInt32BE(at),
      uuid: uuidText(bytes.subarray(at + 4, at + 20)),
      timestamp: isoOf(Number(bytes.readBigInt64BE(at + 20))),
    };
  });
}

/** Lists the rows in a piece of a COPY that ends with a row. */
export function* rowsIn(bytes: Buffer): Generator<EventRow> {
  let at = 0;
  while (at < bytes.length) {
    const count = bytes.readInt16BE(at);
    if (count === END) return;
    at += 2;
    const columns: number[] = [];
    for (let column = 0; column < count; column += 1) {
      columns.push(at);
      at += 4 + Math.max(0, bytes.readInt32BE(at));
    }
    yield new EventRow(bytes, columns);
  }
}

/** Cuts the bytes of a COPY into pieces of whole rows, each of about `size` bytes at least and in memory of its own. */
export class RowPieces {
  readonly #size: number;
  /** How much there must be before it is worth looking for the end of a row. */
  #wanted: number;
  readonly #chunks: Buffer[] = [];
  #bytes = 0;
  #begun = false;

  constructor(size: number) {
    this.#size = size;
    this.#wanted = size;
  }

  /** Takes a chunk. Returns a piece when there is enough for one. */
  take(chunk: Buffer): Buffer | undefined {
    this.#chunks.push(chunk);
    this.#bytes += chunk.length;
    if (this.#bytes < this.#wanted) return undefined;
    return this.#cut();
  }

  /** Returns what is left. Undefined: nothing. */
  rest(): Buffer | undefined {
    return this.#cut();
  }

  #cut(): Buffer | undefined {
    // Memory of its own, which can move to a thread.
    const all = Buffer.allocUnsafeSlow(this.#bytes);
    let at = 0;
    for (const chunk of this.#chunks) at += chunk.copy(all, at);
    const begin = this.#begun ? 0 : SIGNATURE_BYTES;
    if (all.length < begin) return undefined;
    let end = begin;
    while (end + 2 <= all.length) {
      const next = endOfRow(all, end);
      if (next === undefined) break;
      end = next;
    }
    const rest = Buffer.from(all.subarray(end));
    this.#chunks.length = 0;
    this.#begun = true;
    this.#chunks.push(rest);
    this.#bytes = rest.length;
    // The chunks of a large row would be put together again with each further one.
    this.#wanted = Math.max(this.#size, 2 * rest.length);
    return end > begin ? all.subarray(begin, end) : undefined;
  }
}

/** Where a row ends. Undefined: not all of it is there, or nothing follows. */
function endOfRow(bytes: Buffer, from: number): number | undefined {
  const count = bytes.readInt16BE(from);
  if (count === END) return undefined;
  let at = from + 2;
  for (let column = 0; column < count; column += 1) {
    if (at + 4 > bytes.length) return undefined;
    at += 4 + Math.max(0, bytes.readInt32BE(at));
  }
  return at <= bytes.length ? at : undefined;
}
