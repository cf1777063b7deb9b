import type { Column } from '../columns.ts';
import { pathOf, physicalType, writeSchema } from './schema.ts';
import type { Bounds } from './statistics.ts';
import { ThriftWriter } from './thrift.ts';

export interface ChunkPlace {
  values: number;
  nulls: number;
  encodings: number[];
  bounds: Bounds | undefined;
  /** Of the first page with values, and of the dictionary's. */
  dataOffset: number;
  dictionaryOffset: number | undefined;
  bytes: number;
  uncompressedBytes: number;
}

export interface GroupPlace {
  rows: number;
  chunks: ChunkPlace[];
}

const MAGIC = Buffer.from('PAR1');
const CREATED_BY = 'Sluice version 1 (build 1)';

export const fileHeader = (): Buffer => MAGIC;

/** What stands at the end of a file: where everything is. */
export function fileFooter(columns: readonly Column[], groups: readonly GroupPlace[], codec: number): Buffer {
  const thrift = new ThriftWriter();
  thrift.i32(1, 2);
  writeSchema(thrift, 2, columns);
  thrift.i64(
    3,
    groups.reduce((sum, { rows }) => sum + rows, 0),
  );
  thrift.structs(4, groups, (group) => writeGroup(thrift, group, columns, codec));
  thrift.binary(6, CREATED_BY);
  // Bounds are in the order of each type, without which readers must not use them.
  thrift.structs(7, columns, () => thrift.struct(1, () => undefined));
  const metadata = thrift.finish();
  const length = Buffer.alloc(4);
  length.writeUInt32LE(metadata.length);
  return Buffer.concat([metadata, length, MAGIC]);
}

function writeGroup(
  thrift: ThriftWriter,
  { rows, chunks }: GroupPlace,
  columns: readonly Column[],
  codec: number,
): void {
  const total = (key: 'bytes' | 'uncompressedBytes') => chunks.reduce((sum, chunk) => sum + chunk[key], 0);
  const first = chunks[0] as ChunkPlace;
  thrift.structs(1, chunks, (chunk) => {
    const column = columns[chunks.indexOf(chunk)] as Column;
    thrift.i64(2, 0);
    thrift.struct(3, () => writeChunk(thrift, chunk, column, codec));
  });
  thrift.i64(2, total('uncompressedBytes'));
  thrift.i64(3, rows);
  thrift.i64(5, first.dictionaryOffset ?? first.dataOffset);
  thrift.i64(6, total('bytes'));
}

function writeChunk(thrift: ThriftWriter, chunk: ChunkPlace, column: Column, codec: number): void {
  thrift.i32(1, physicalType(column.type));
  thrift.i32s(2, chunk.encodings);
  thrift.strings(3, pathOf(column));
  thrift.i32(4, codec);
  thrift.i64(5, chunk.values);
  thrift.i64(6, chunk.uncompressedBytes);
  thrift.i64(7, chunk.bytes);
  thrift.i64(9, chunk.dataOffset);
  if (chunk.dictionaryOffset !== undefined) thrift.i64(11, chunk.dictionaryOffset);
  thrift.struct(12, () => {
    thrift.i64(3, chunk.nulls);
    const { bounds } = chunk;
    if (!bounds) return;
    if (bounds.greatest) thrift.binary(5, bounds.greatest);
    thrift.binary(6, bounds.least);
    if (bounds.greatest) thrift.bool(7, bounds.greatestExact);
    thrift.bool(8, bounds.leastExact);
  });
}
