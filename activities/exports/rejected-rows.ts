import type { Column } from '../../formats/columns.ts';
import type { RejectedRow } from '../../formats/copy-input.ts';

/** What a row of each model is known by. */
const KEYS = ['uuid', 'session_id', 'distinct_id'];

/** The field of a row in COPY's binary form; null if it is null, or not there. */
function fieldOf(bytes: Buffer, index: number): Buffer | null {
  let at = 2;
  for (let field = 0; at + 4 <= bytes.length; field += 1) {
    const length = bytes.readInt32BE(at);
    at += 4;
    if (field === index) return length < 0 ? null : bytes.subarray(at, at + length);
    at += Math.max(0, length);
  }
  return null;
}

const uuidText = (bytes: Buffer) =>
  bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');

/** Which row was left out, and why. */
export function describeRejected(
  columns: readonly Column[],
  { row, reason, bytes }: Pick<RejectedRow, 'row' | 'reason' | 'bytes'>,
): string {
  const key = KEYS.find((name) => columns.some((one) => one.name === name));
  const index = columns.findIndex((one) => one.name === key);
  const value = index < 0 ? null : fieldOf(bytes, index);
  if (value === null) return `row ${row + 1}: ${reason}`;
  const shown = columns[index]?.type === 'uuid' ? uuidText(value) : value.toString('utf8').slice(0, 200);
  return `${key} ${shown}: ${reason}`;
}
