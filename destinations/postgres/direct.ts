import type { Column } from '../../formats/columns.ts';
import { COPY_HEADER } from '../../formats/copy-format.ts';
import { CopyRows } from '../../formats/copy-rows.ts';
import type { TargetColumn } from './table.ts';

const OUTPUT_BYTES = 256 * 1024;
const JSONB_VERSION = 1;
const UUID_TEXT_BYTES = 36;

/** How a field is changed so that the target's type can read it. */
type Change = 'as is' | 'to jsonb' | 'uuid to text';

const SAME: Record<Column['type'], readonly string[]> = {
  string: ['text', 'character varying'],
  json: ['text', 'character varying', 'json'],
  uuid: ['uuid'],
  int32: ['integer'],
  int64: ['bigint'],
  float64: ['double precision'],
  bool: ['boolean'],
  timestamp: ['timestamp with time zone'],
  strings: ['text[]'],
};

function changeOf({ source, type }: TargetColumn): Change | undefined {
  if (SAME[source.type].includes(type)) return 'as is';
  if ((source.type === 'json' || source.type === 'string') && type === 'jsonb') return 'to jsonb';
  if (source.type === 'uuid' && (type === 'text' || type === 'character varying')) return 'uuid to text';
  return undefined;
}

/** The change for each column of the source. A column that the table lacks has none. Undefined if a cast is needed. */
export function directChanges(
  source: readonly Column[],
  target: readonly TargetColumn[],
): (Change | undefined)[] | undefined {
  const changes = new Map(target.map((column) => [column.name, changeOf(column)]));
  if ([...changes.values()].includes(undefined)) return undefined;
  return source.map((column) => changes.get(column.name));
}

/** The changes for a table that was created for these columns. */
export const createdChanges = (columns: readonly Column[]): Change[] =>
  columns.map(({ type }) => (type === 'json' ? 'to jsonb' : type === 'uuid' ? 'uuid to text' : 'as is'));

const HEX = Buffer.from('0123456789abcdef');

function writeUuid(from: Buffer, start: number, to: Buffer, at: number): void {
  let place = at;
  for (let index = 0; index < 16; index += 1) {
    if (index === 4 || index === 6 || index === 8 || index === 10) to[place++] = 0x2d;
    const byte = from[start + index] as number;
    to[place++] = HEX[byte >> 4] as number;
    to[place++] = HEX[byte & 15] as number;
  }
}

/**
 * Changes the rows of a binary COPY so that a table can read them: documents get the version with which `jsonb` begins,
 * uuids become text, columns that the table lacks are left out. It moves bytes and parses no value.
 */
export async function* directRows(
  source: AsyncIterable<Buffer>,
  changes: readonly (Change | undefined)[],
): AsyncGenerator<Buffer> {
  const rows = new CopyRows(changes.length);
  const kept = changes.filter((change) => change !== undefined).length;
  let out = Buffer.allocUnsafe(OUTPUT_BYTES);
  let used = COPY_HEADER.copy(out);
  const full: Buffer[] = [];

  const makeRoom = (bytes: number) => {
    if (used + bytes <= out.length) return;
    full.push(out.subarray(0, used));
    out = Buffer.allocUnsafe(Math.max(OUTPUT_BYTES, bytes));
    used = 0;
  };

  for await (const chunk of source) {
    rows.push(chunk);
    while (rows.next()) {
      makeRoom(rows.end - rows.start + changes.length * UUID_TEXT_BYTES);
      used = out.writeInt16BE(kept, used);
      for (let index = 0; index < changes.length; index += 1) {
        const change = changes[index];
        if (change === undefined) continue;
        const length = rows.fieldLength(index);
        const start = rows.fieldStart(index);
        if (length < 0 || change === 'as is') {
          used += rows.buffer.copy(out, used, start - 4, start + Math.max(0, length));
        } else if (change === 'to jsonb') {
          used = out.writeInt32BE(length + 1, used);
          out[used] = JSONB_VERSION;
          used += 1;
          used += rows.buffer.copy(out, used, start, start + length);
        } else {
          used = out.writeInt32BE(UUID_TEXT_BYTES, used);
          writeUuid(rows.buffer, start, out, used);
          used += UUID_TEXT_BYTES;
        }
      }
      while (full.length > 0) yield full.shift() as Buffer;
    }
  }
  rows.finish();
  makeRoom(2);
  used = out.writeInt16BE(-1, used);
  yield* full;
  yield out.subarray(0, used);
}
