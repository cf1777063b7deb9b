// The messages of Arrow's streaming format: the schema, batches of rows, and the end.
import type { Column, ColumnType } from '../columns.ts';
import { FlatBuffer, type Place } from './flat-buffer.ts';

/** Numbers of Arrow's Message.fbs and Schema.fbs. */
const VERSION_5 = 4;
const HEADER = { schema: 1, batch: 3 } as const;
const TYPE = { int: 2, float: 3, text: 5, bool: 6, timestamp: 10, list: 12 } as const;
const DOUBLE = 2;
const MICROSECONDS = 2;
const MARK = 0xffffffff;
const ALIGNMENT = 8;

/** A part of a batch: how many values it has, how many of them are null, and their bytes. */
export interface Node {
  length: number;
  nulls: number;
}

export const END: Buffer = Buffer.from([0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);

export function schemaMessage(columns: readonly Column[]): Buffer {
  const flat = new FlatBuffer();
  const fields = flat.references(columns.map(({ name, type }) => field(flat, name, type)));
  const schema = flat.table([undefined, () => flat.reference(fields)]);
  return message(flat, HEADER.schema, schema, 0);
}

/** The head of a batch, and how long its buffers are with the bytes that align each of them. */
export function batchMessage(rows: number, nodes: readonly Node[], buffers: readonly Buffer[]): Buffer {
  const flat = new FlatBuffer();
  let at = 0;
  const places = buffers.map(({ length }): [number, number] => {
    const from = at;
    at += length + padding(length).length;
    return [from, length];
  });
  const placed = flat.pairs(places);
  const told = flat.pairs(nodes.map(({ length, nulls }) => [length, nulls]));
  const batch = flat.table([
    () => flat.int64(rows),
    () => flat.reference(told),
    () => flat.reference(placed),
  ]);
  return message(flat, HEADER.batch, batch, at);
}

const ZEROS = Buffer.alloc(ALIGNMENT);

/** The bytes that follow so many bytes, so that what comes next is aligned. */
export const padding = (length: number): Buffer => ZEROS.subarray(0, -length & (ALIGNMENT - 1));

function message(flat: FlatBuffer, kind: number, header: Place, bodyBytes: number): Buffer {
  const root = flat.table([
    () => flat.int16(VERSION_5),
    () => flat.int8(kind),
    () => flat.reference(header),
    () => flat.int64(bodyBytes),
  ]);
  const metadata = flat.finish(root);
  const gap = padding(metadata.length);
  const head = Buffer.alloc(8);
  head.writeUInt32LE(MARK);
  head.writeInt32LE(metadata.length + gap.length, 4);
  return Buffer.concat([head, metadata, gap]);
}

function field(flat: FlatBuffer, name: string, type: ColumnType): Place {
  const children = flat.references(type === 'strings' ? [field(flat, 'item', 'string')] : []);
  const [kind, described] = typeOf(flat, type);
  const text = flat.text(name);
  return flat.table([
    () => flat.reference(text),
    () => flat.int8(1),
    () => flat.int8(kind),
    () => flat.reference(described),
    undefined,
    () => flat.reference(children),
  ]);
}

function typeOf(flat: FlatBuffer, type: ColumnType): [number, Place] {
  switch (type) {
    case 'int32':
    case 'int64': {
      const bits = type === 'int32' ? 32 : 64;
      return [TYPE.int, flat.table([() => flat.int32(bits), () => flat.int8(1)])];
    }
    case 'float64':
      return [TYPE.float, flat.table([() => flat.int16(DOUBLE)])];
    case 'bool':
      return [TYPE.bool, flat.table([])];
    case 'timestamp': {
      const zone = flat.text('UTC');
      return [TYPE.timestamp, flat.table([() => flat.int16(MICROSECONDS), () => flat.reference(zone)])];
    }
    case 'strings':
      return [TYPE.list, flat.table([])];
    default:
      return [TYPE.text, flat.table([])];
  }
}
