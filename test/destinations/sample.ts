import type { Column } from '../../formats/columns.ts';

/** An event as the model of events gives it. */
export interface SampleEvent {
  uuid: string;
  event: string;
  distinct_id: string;
  team_id: number;
  timestamp: Date;
  properties: string;
  elements_chain: string | null;
}

export const EVENT_COLUMNS: Column[] = [
  { name: 'uuid', type: 'uuid', nullable: false },
  { name: 'event', type: 'string', nullable: false },
  { name: 'distinct_id', type: 'string', nullable: false },
  { name: 'team_id', type: 'int32', nullable: false },
  { name: 'timestamp', type: 'timestamp', nullable: false },
  { name: 'properties', type: 'json', nullable: false },
  { name: 'elements_chain', type: 'string', nullable: true },
];

export function sampleUuid(index: number): string {
  return `01990000-0000-7000-8000-${index.toString(16).padStart(12, '0')}`;
}

export function sampleEvents(
  count: number,
  change: (index: number) => Partial<SampleEvent> = () => ({}),
): SampleEvent[] {
  return Array.from({ length: count }, (_, index) => ({
    uuid: sampleUuid(index),
    event: index % 3 === 0 ? '$pageview' : 'clicked "büy"',
    distinct_id: `person-${index % 7}`,
    team_id: 7,
    timestamp: new Date(Date.UTC(2026, 0, 31, 12, 0, 0, index % 1000)),
    properties: JSON.stringify({
      $browser: 'Firefox',
      index,
      text: 'a\nb €',
      nested: { list: [1, 2.5, null] },
    }),
    elements_chain: null,
    ...change(index),
  }));
}

const int32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
};

/** A value in the binary form of its type. */
function binary(column: Column, value: unknown): Buffer | null {
  if (value === null || value === undefined) return null;
  switch (column.type) {
    case 'string':
    case 'json':
      return Buffer.from(value as string);
    case 'uuid':
      return Buffer.from((value as string).replaceAll('-', ''), 'hex');
    case 'int32':
      return int32(value as number);
    case 'int64':
    case 'timestamp': {
      const bytes = Buffer.alloc(8);
      const number =
        value instanceof Date
          ? BigInt(value.getTime() - Date.UTC(2000, 0, 1)) * 1000n
          : BigInt(value as number);
      bytes.writeBigInt64BE(number);
      return bytes;
    }
    case 'float64': {
      const bytes = Buffer.alloc(8);
      bytes.writeDoubleBE(value as number);
      return bytes;
    }
    case 'bool':
      return Buffer.of(value ? 1 : 0);
    case 'strings': {
      const texts = (value as string[]).map((text) => Buffer.from(text));
      const header = [texts.length > 0 ? 1 : 0, 0, 25, ...(texts.length > 0 ? [texts.length, 1] : [])];
      return Buffer.concat([...header.map(int32), ...texts.flatMap((text) => [int32(text.length), text])]);
    }
  }
}

export const COPY_HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
export const COPY_TRAILER = Buffer.of(0xff, 0xff);

/** Rows as `copy … to stdout (format binary)` gives them. */
export function copyBytes(columns: readonly Column[], rows: readonly object[]): Buffer {
  const fields = Buffer.alloc(2);
  fields.writeInt16BE(columns.length);
  const tuples = rows.flatMap((row) => [
    fields,
    ...columns.flatMap((column) => {
      const bytes = binary(column, (row as Record<string, unknown>)[column.name]);
      return bytes === null ? [int32(-1)] : [int32(bytes.length), bytes];
    }),
  ]);
  return Buffer.concat([COPY_HEADER, ...tuples, COPY_TRAILER]);
}

/** The bytes in pieces of this size, as a connection would bring them. */
export async function* pieces(bytes: Buffer, size = 10_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}
