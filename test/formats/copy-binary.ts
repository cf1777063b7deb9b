import type { Column } from '../../formats/columns.ts';

/** A value of a test: a timestamp is in microseconds since 1970, an int64 any bigint. */
export type Value = string | number | bigint | boolean | (string | null)[] | null;
export type Row = readonly Value[];

const EPOCH = 946_684_800_000_000n;
export const FOREVER = 2n ** 63n - 1n;
export const NEVER = -(2n ** 63n);

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}

function list(values: readonly (string | null)[]): Buffer {
  const head = [int32(values.length > 0 ? 1 : 0), int32(values.includes(null) ? 1 : 0), int32(25)];
  if (values.length > 0) head.push(int32(values.length), int32(1));
  for (const value of values) head.push(value === null ? int32(-1) : text(value));
  return Buffer.concat(head);
}

function text(value: string): Buffer {
  const bytes = Buffer.from(value);
  return Buffer.concat([int32(bytes.length), bytes]);
}

function fieldBytes(type: Column['type'], value: Exclude<Value, null>): Buffer {
  switch (type) {
    case 'uuid':
      return Buffer.from((value as string).replaceAll('-', ''), 'hex');
    case 'int32':
      return int32(value as number);
    case 'int64':
      return int64(value as bigint);
    case 'float64': {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(value as number);
      return bytes;
    }
    case 'bool':
      return Buffer.of(value ? 1 : 0);
    case 'timestamp':
      return int64(value === FOREVER || value === NEVER ? value : (value as bigint) - EPOCH);
    case 'strings':
      return list(value as (string | null)[]);
    default:
      return Buffer.from(value as string);
  }
}

export function rowBytes(columns: readonly Column[], row: Row): Buffer {
  const count = Buffer.alloc(2);
  count.writeInt16BE(columns.length);
  const fields = columns.flatMap(({ type }, index) => {
    const value = row[index] as Value;
    if (value === null) return [int32(-1)];
    const bytes = fieldBytes(type, value);
    return [int32(bytes.length), bytes];
  });
  return Buffer.concat([count, ...fields]);
}

export const HEADER = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)]);
export const TRAILER = Buffer.of(0xff, 0xff);

/** What Postgres would send for `copy … to stdout (format binary)`. */
export const copyBytes = (columns: readonly Column[], rows: readonly Row[]): Buffer =>
  Buffer.concat([HEADER, ...rows.map((row) => rowBytes(columns, row)), TRAILER]);

/** The bytes in chunks of these sizes, the last size for all that is left. */
export async function* inChunks(bytes: Buffer, ...sizes: number[]): AsyncGenerator<Buffer> {
  let at = 0;
  for (let index = 0; at < bytes.length; index += 1) {
    const size = sizes[Math.min(index, sizes.length - 1)] ?? bytes.length;
    yield Buffer.from(bytes.subarray(at, at + size));
    at += size;
  }
}
