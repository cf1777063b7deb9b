import type { Column } from '../../formats/columns.ts';
import type { CopyRows } from '../../formats/copy-rows.ts';

/** PostHog's own exports put this many events into a request. */
const MOST_EVENTS = 5_000;
/** Receivers take bodies of 20,971,520 bytes. A request stays below that. */
export const MOST_BODY_BYTES = 20_971_519;
/** A request of this size is sent, so that the requests under way fit into memory. A single event may be larger. */
const FULL_BODY_BYTES = 4 * 1024 * 1024;

const MILLISECONDS_2000 = Date.UTC(2000, 0, 1);
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const COMMA = Buffer.from(',');
const isSpace = (byte: number | undefined) =>
  byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;

/** Microseconds since 2000 as ISO 8601 in UTC, to the microsecond. */
export function timestampText(microseconds: bigint): string {
  const within = ((microseconds % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = (microseconds - within) / 1_000_000n;
  const text = new Date(MILLISECONDS_2000 + Number(seconds) * 1000).toISOString();
  return `${text.slice(0, -5)}.${String(within).padStart(6, '0')}Z`;
}

function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** Adds members to the text of a JSON object. They come last, since readers take the last of two equal names. */
export function withMembers(object: Buffer | null, members: string): Buffer {
  if (object === null) return Buffer.from(`{${members}}`);
  let last = object.length - 1;
  while (isSpace(object[last])) last -= 1;
  let first = 0;
  while (isSpace(object[first])) first += 1;
  if (object[first] !== OPEN_BRACE || object[last] !== CLOSE_BRACE) return Buffer.from(`{${members}}`);
  let inner = last - 1;
  while (isSpace(object[inner])) inner -= 1;
  const separator = inner === first ? '' : ',';
  return Buffer.concat([object.subarray(first, last), Buffer.from(`${separator}${members}}`)]);
}

interface EventColumns {
  uuid: number;
  event: number;
  distinctId: number;
  timestamp: number;
  properties: number;
  elementsChain: number;
  isBinaryUuid: boolean;
}

/** The indexes of an event's columns. Undefined if one is missing that every event needs. */
export function eventColumns(columns: readonly Column[]): EventColumns | undefined {
  const at = (name: string) => columns.findIndex((column) => column.name === name);
  const found = {
    uuid: at('uuid'),
    event: at('event'),
    distinctId: at('distinct_id'),
    timestamp: at('timestamp'),
    properties: at('properties'),
    elementsChain: at('elements_chain'),
  };
  const { elementsChain: _optional, ...needed } = found;
  if (Object.values(needed).some((index) => index < 0)) return undefined;
  return { ...found, isBinaryUuid: columns[found.uuid]?.type === 'uuid' };
}

interface WireEvent {
  uuid: string;
  /** The event's timestamp in milliseconds since 1970. */
  time: number;
  bytes: Buffer;
}

/** Writes the current row as an event of the capture API. The properties are copied as text, without being parsed. */
export function wireEvent(rows: CopyRows, columns: EventColumns): WireEvent {
  const text = (index: number) => rows.field(index)?.toString('utf8') ?? '';
  const id = rows.field(columns.uuid) ?? Buffer.alloc(16);
  const uuid = columns.isBinaryUuid ? uuidText(id) : id.toString('utf8');
  const microseconds = rows.field(columns.timestamp)?.readBigInt64BE(0) ?? 0n;
  const event = text(columns.event);
  const members = ['"$geoip_disable":true'];
  if (event === '$autocapture' && columns.elementsChain >= 0) {
    const chain = text(columns.elementsChain);
    if (chain !== '') members.push(`"$elements_chain":${JSON.stringify(chain)}`);
  }
  const head =
    `{"uuid":${JSON.stringify(uuid)},"distinct_id":${JSON.stringify(text(columns.distinctId))},` +
    `"timestamp":"${timestampText(microseconds)}","event":${JSON.stringify(event)},"properties":`;
  return {
    uuid,
    time: MILLISECONDS_2000 + Number(microseconds / 1000n),
    bytes: Buffer.concat([
      Buffer.from(head),
      withMembers(rows.field(columns.properties), members.join(',')),
      Buffer.from('}'),
    ]),
  };
}

const TAIL = Buffer.from(']}');

/** A complete batch of events. Parts of it can be sent too. */
export class FullBatch {
  readonly uuids: readonly string[];
  /** Where each event begins in the body, and where one behind the last would begin. */
  readonly #starts: readonly number[];
  readonly #body: Buffer;

  constructor(body: Buffer, uuids: readonly string[], starts: readonly number[]) {
    this.#body = body;
    this.uuids = uuids;
    this.#starts = starts;
  }

  /** The body of a request with the events from `from` up to, but not including, `to`. By default all events. */
  body(from = 0, to = this.uuids.length): Buffer {
    if (from === 0 && to === this.uuids.length) return this.#body;
    const [first, start, end] = [this.#starts[0], this.#starts[from], this.#starts[to]] as [
      number,
      number,
      number,
    ];
    return Buffer.concat([this.#body.subarray(0, first), this.#body.subarray(start, end - 1), TAIL]);
  }
}

/** Collects events for a request. */
export class Batch {
  readonly #head: Buffer;
  #pieces: Buffer[] = [];
  #uuids: string[] = [];
  #starts: number[];
  #bytes: number;

  constructor(token: string, historical: boolean) {
    const flag = historical ? ',"historical_migration":true' : '';
    this.#head = Buffer.from(`{"api_key":${JSON.stringify(token)}${flag},"batch":[`);
    this.#bytes = this.#head.length + TAIL.length;
    this.#starts = [this.#head.length];
  }

  get count(): number {
    return this.#uuids.length;
  }

  /** Whether the event fits into a request alone. */
  couldTake(event: Buffer): boolean {
    return this.#head.length + TAIL.length + event.length <= MOST_BODY_BYTES;
  }

  hasRoomFor(event: Buffer): boolean {
    return (
      this.count === 0 || (this.count < MOST_EVENTS && this.#bytes + event.length + 1 <= FULL_BODY_BYTES)
    );
  }

  add({ uuid, bytes }: WireEvent): void {
    if (this.count > 0) this.#pieces.push(COMMA);
    this.#pieces.push(bytes);
    this.#uuids.push(uuid);
    this.#starts.push((this.#starts.at(-1) as number) + bytes.length + 1);
    this.#bytes += bytes.length + 1;
  }

  /** Takes the collected events. The batch is empty afterwards. */
  take(): FullBatch {
    const full = new FullBatch(Buffer.concat([this.#head, ...this.#pieces, TAIL]), this.#uuids, this.#starts);
    this.#pieces = [];
    this.#uuids = [];
    this.#starts = [this.#head.length];
    this.#bytes = this.#head.length + TAIL.length;
    return full;
  }
}
