// The clocks of a zone as a file of the time zone database (TZif, RFC 9636), which other programs read.

/** What clocks show: until the first change `first`, and from each change on its offset. Offsets are milliseconds to the east. */
export interface Clocks {
  first: number;
  /** In order. */
  changes: readonly { at: number; offset: number }[];
}

const HEADER = 44;
/** An offset, whether it is summer time, and where its name is. */
const TYPE = 6;
const VERSION_2 = 0x32;

/**
 * Writes clocks as TZif, with times of 64 bits. There is no rule for the time after the last change: the clocks keep its
 * offset. No offset has a name, and none counts as summer time.
 */
export function tzif({ first, changes }: Clocks): Uint8Array {
  const offsets = [...new Set([first, ...changes.map(({ offset }) => offset)])];
  // The block for times of 32 bits, which every file has, is empty.
  const size = HEADER + TYPE + 1 + HEADER + changes.length * 9 + offsets.length * TYPE + 1 + 2;
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  const header = (at: number, times: number, types: number): number => {
    bytes.set(Buffer.from('TZif'), at);
    bytes[at + 4] = VERSION_2;
    // After three counts that are zero: of changes, of offsets, and of the letters of names.
    for (const [index, count] of [times, types, 1].entries()) view.setUint32(at + 32 + index * 4, count);
    return at + HEADER;
  };
  let at = header(header(0, 0, 1) + TYPE + 1, changes.length, offsets.length);
  for (const change of changes) {
    view.setBigInt64(at, BigInt(Math.floor(change.at / 1000)));
    at += 8;
  }
  for (const { offset } of changes) bytes[at++] = offsets.indexOf(offset);
  for (const offset of offsets) {
    view.setInt32(at, offset / 1000);
    at += TYPE;
  }
  bytes.set([0, 0x0a, 0x0a], at);
  return bytes;
}
