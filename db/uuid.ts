import { randomBytes } from 'node:crypto';

const RANDOM_BYTES = 4096;
let random = Buffer.alloc(0);

/** Random bytes for one UUID. Asking the generator for a few at a time costs more than all else in a request. */
function takeRandom(): Buffer {
  if (random.length < 16) random = randomBytes(RANDOM_BYTES);
  const taken = random.subarray(0, 16);
  random = random.subarray(16);
  return taken;
}

/** A time-ordered UUID (version 7): 48 bits of milliseconds, the rest random. */
export function uuidv7(milliseconds = Date.now()): string {
  const bytes = takeRandom();
  bytes.writeUIntBE(milliseconds, 0, 6);
  bytes[6] = ((bytes[6] as number) & 0x0f) | 0x70;
  bytes[8] = ((bytes[8] as number) & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return UUID.test(text);
}
