// Rows that one thread has written, on their way to another one. Bytes move without being copied, and the rest is
// text: the receiver turns it into objects slice by slice.
import { nextTurn } from '../../db/loop-turns.ts';
import type { CapturedEvent } from '../captured-event.ts';
import type { SeenName } from '../definitions/names.ts';
import { CALLED_FLAG, calledFlagOf } from '../flag-calls.ts';
import { SharedChunk } from '../ingest/copy-bytes.ts';
import {
  compareUuids,
  eventOf,
  isOfNobody,
  OF_NOBODY,
  type PendingEvent,
  type PreparedEvents,
  propertiesOfNobody,
  type RowHead,
} from '../ingest/event-row.ts';
import { personPropertiesOf } from '../persons/properties.ts';

/** After so many events, or characters, a slice of remains ends. */
const SLICE_EVENTS = 1_000;
const SLICE_CHARACTERS = 256 * 1024;
/** The numbers of a head: its chunk, and where it begins and ends there. */
const NUMBERS = 3;

/** What is left of an event besides its head. Zero in place of the properties: none of them matters. */
type Remains = [
  index: number,
  event: string,
  distinctId: string,
  timestamp: number | null,
  historical: 0 | 1,
  properties: Record<string, unknown> | 0,
];

export interface PackedRows {
  chunks: ArrayBuffer[];
  heads: Uint32Array<ArrayBuffer>;
  prefixes: Float64Array<ArrayBuffer>;
  /** The places of the events in the order of their uuids. */
  order: Uint32Array<ArrayBuffer>;
  /** The remains of the events, as JSON lists of some hundred events each. */
  remains: string[];
  bytes: number;
  names: readonly SeenName[];
}

export const transferOf = ({ chunks, heads, prefixes, order }: PackedRows): ArrayBuffer[] => [
  ...chunks,
  ...[heads.buffer, prefixes.buffer, order.buffer],
];

/** The properties that are read after the row is written: by persons and groups, and by what notes checked flags. */
function propertiesLeftOf(event: CapturedEvent): Remains[5] {
  const flag = calledFlagOf(event);
  const ofNobody = isOfNobody(event);
  if (flag === undefined) return ofNobody ? 0 : personPropertiesOf(event);
  return ofNobody ? propertiesOfNobody(event) : { ...personPropertiesOf(event), [CALLED_FLAG]: flag };
}

function remainsOf(event: CapturedEvent): string {
  const remains: Remains = [
    event.index,
    event.event,
    event.distinct_id,
    event.timestamp,
    event.historical ? 1 : 0,
    propertiesLeftOf(event),
  ];
  return JSON.stringify(remains);
}

/** Packs rows whose chunks no other request shares. */
export function pack({ events, chunks, bytes, names = [] }: PreparedEvents): PackedRows {
  const places = new Map(chunks.map((chunk, index) => [chunk.bytes, index]));
  const heads = new Uint32Array(events.length * NUMBERS);
  const prefixes = new Float64Array(events.length);
  const remains: string[] = [];
  let slice: string[] = [];
  let characters = 0;
  const endSlice = () => {
    if (slice.length > 0) remains.push(`[${slice.join(',')}]`);
    slice = [];
    characters = 0;
  };
  for (const [index, { event, head }] of events.entries()) {
    heads.set([places.get(head.bytes) as number, head.from, head.to], index * NUMBERS);
    prefixes[index] = head.prefix;
    const text = remainsOf(event);
    slice.push(text);
    characters += text.length;
    if (slice.length >= SLICE_EVENTS || characters >= SLICE_CHARACTERS) endSlice();
  }
  endSlice();
  const order = Uint32Array.from(events.keys()).sort(
    (a, b) => compareUuids((events[a] as PendingEvent).head, (events[b] as PendingEvent).head) || a - b,
  );
  // A chunk has its memory to itself.
  const memory = chunks.map((chunk) => chunk.bytes.buffer as ArrayBuffer);
  return { chunks: memory, heads, prefixes, order, remains, bytes, names };
}

/** Unpacks rows. Between the slices others get their turn. The caller releases the chunks. */
export async function unpack(
  { chunks: memory, heads, prefixes, order, remains, bytes, names }: PackedRows,
  projectId: number,
  receivedAt: number,
): Promise<PreparedEvents> {
  const chunks = memory.map((one) => new SharedChunk(Buffer.from(one)));
  const events: PendingEvent[] = [];
  for (const slice of remains) {
    await nextTurn();
    for (const [index, event, distinctId, timestamp, historical, properties] of JSON.parse(
      slice,
    ) as Remains[]) {
      const at = events.length;
      const chunk = chunks[heads[at * NUMBERS] as number] as SharedChunk;
      const head: RowHead = {
        bytes: chunk.bytes,
        from: heads[at * NUMBERS + 1] as number,
        to: heads[at * NUMBERS + 2] as number,
        prefix: prefixes[at] as number,
      };
      const remaining = {
        index,
        event,
        distinct_id: distinctId,
        properties: properties === 0 ? OF_NOBODY : properties,
        timestamp: timestamp ?? Number.NaN,
        received_at: receivedAt,
        historical: historical === 1,
      };
      // A follower of events sees these later: their properties are not here.
      events.push({ projectId, event: eventOf(remaining), head, look: undefined });
    }
  }
  const sorted = Array.from(order, (at) => events[at] as PendingEvent);
  return { events, sorted, chunks, bytes, names };
}
