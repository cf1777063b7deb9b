import { bound } from './bounds';
import { xxh64 } from './hash';
import { columnType, UUID } from './memory';
import {
  ENTRIES,
  ENTRIES_ROOM,
  ENTRIES_USED,
  ENTRY_COUNT,
  ENTRY_LIMIT,
  OFFSETS,
  TABLE,
  TABLE_MASK,
  USED,
  VALUES,
} from './page-layout';

/** Returns whether a length precedes each value of the type. */
export function isText(type: u32): bool {
  return type <= UUID;
}

/** Returns the index of a value in the dictionary. Adds a new value. Returns -1 if there is no room. */
export function place(column: u32, type: u32, at: u32, length: u32): i32 {
  const hash = xxh64(at, length);
  const short = hash >> 32;
  const mask = load<u32>(column, TABLE_MASK);
  const table = load<u32>(column, TABLE);
  const entries = load<u32>(column, ENTRIES);
  const offsets = load<u32>(column, OFFSETS);
  const prefix: u32 = isText(type) ? 4 : 0;
  let slot = <u32>hash & mask;
  while (true) {
    const found = load<u64>(table + (slot << 3));
    if (found === 0) break;
    if (found >> 32 === short) {
      const index = <u32>found - 1;
      const entry = entries + load<u32>(offsets + (index << 2));
      const entryLength = prefix ? load<u32>(entry) : length;
      if (entryLength === length && memory.compare(entry + prefix, at, length) === 0) return index;
    }
    slot = (slot + 1) & mask;
  }
  const count = load<u32>(column, ENTRY_COUNT);
  const used = load<u32>(column, ENTRIES_USED);
  const room = load<u32>(column, ENTRIES_ROOM);
  if (count === load<u32>(column, ENTRY_LIMIT) || length > room || used + length + 4 > room) return -1;
  store<u64>(table + (slot << 3), (short << 32) | (count + 1));
  store<u32>(offsets + (count << 2), used);
  if (prefix) store<u32>(entries + used, length);
  memory.copy(entries + used + prefix, at, length);
  store<u32>(column, used + prefix + length, ENTRIES_USED);
  store<u32>(column, count + 1, ENTRY_COUNT);
  bound(column, type, at, length);
  return count;
}

/** Fills the hash table again from the entries, after its size has changed. */
export function rehash(column: u32): void {
  const mask = load<u32>(column, TABLE_MASK);
  const table = load<u32>(column, TABLE);
  const entries = load<u32>(column, ENTRIES);
  const offsets = load<u32>(column, OFFSETS);
  const count = load<u32>(column, ENTRY_COUNT);
  const used = load<u32>(column, ENTRIES_USED);
  const prefix: u32 = isText(columnType(column)) ? 4 : 0;
  memory.fill(table, 0, (mask + 1) << 3);
  for (let i: u32 = 0; i < count; i += 1) {
    const from = load<u32>(offsets + (i << 2));
    const to = i + 1 < count ? load<u32>(offsets + ((i + 1) << 2)) : used;
    const hash = xxh64(entries + from + prefix, to - from - prefix);
    let slot = <u32>hash & mask;
    while (load<u64>(table + (slot << 3)) !== 0) slot = (slot + 1) & mask;
    store<u64>(table + (slot << 3), ((hash >> 32) << 32) | (i + 1));
  }
}

/** Returns the size of the page's values without the dictionary. */
export function plainSize(column: u32): u64 {
  const values = load<u32>(column, VALUES);
  const offsets = load<u32>(column, OFFSETS);
  const count = load<u32>(column, ENTRY_COUNT);
  let total: u64 = 0;
  for (let i: u32 = 0; i < load<u32>(column, USED); i += 4) {
    const index = load<u32>(values + i);
    const end = index + 1 < count ? load<u32>(offsets + ((index + 1) << 2)) : load<u32>(column, ENTRIES_USED);
    total += end - load<u32>(offsets + (index << 2));
  }
  return total;
}

/** Writes the page's values without the dictionary. Returns the end of the output. */
export function writePlain(column: u32, to: u32): u32 {
  const values = load<u32>(column, VALUES);
  const offsets = load<u32>(column, OFFSETS);
  const entries = load<u32>(column, ENTRIES);
  const count = load<u32>(column, ENTRY_COUNT);
  for (let i: u32 = 0; i < load<u32>(column, USED); i += 4) {
    const index = load<u32>(values + i);
    const from = load<u32>(offsets + (index << 2));
    const end = index + 1 < count ? load<u32>(offsets + ((index + 1) << 2)) : load<u32>(column, ENTRIES_USED);
    memory.copy(to, entries + from, end - from);
    to += end - from;
  }
  return to;
}
