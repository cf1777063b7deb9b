import { randomFillSync } from 'node:crypto';

/** Random bytes for many ids: asking for sixteen bytes costs as much as asking for thousands. */
const POOL = Buffer.alloc(16 * 512);
let used = POOL.length;

/** Creates a time-ordered UUID (version 7): 48 bits of milliseconds, the rest random. */
export function uuidv7(milliseconds = Date.now()): string {
  if (used === POOL.length) {
    randomFillSync(POOL);
    used = 0;
  }
  const start = used;
  used += 16;
  POOL.writeUIntBE(milliseconds, start, 6);
  POOL[start + 6] = ((POOL[start + 6] as number) & 0x0f) | 0x70;
  POOL[start + 8] = ((POOL[start + 8] as number) & 0x3f) | 0x80;
  const hex = POOL.toString('hex', start, used);
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
