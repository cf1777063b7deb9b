import { createHash, randomBytes, randomInt } from 'node:crypto';

const BASE62 = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';

function base62(bytes: Buffer): string {
  let number = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  while (number > 0n) {
    text = BASE62[Number(number % 62n)] + text;
    number /= 62n;
  }
  return text.padStart(1, '0');
}

const secret = (prefix: string) => `${prefix}_${base62(randomBytes(32))}`;

/** `phx_…`: acts for a user on the management API. Shown once, stored as a hash. */
export const newPersonalApiKey = () => secret('phx');
/** `phc_…`: names a project to capture and flags; public. */
export const newProjectToken = () => secret('phc');
/** `phs_…`: reads a project's flag definitions. */
export const newProjectSecret = () => secret('phs');
/** The id of a key's row; not a secret. */
export const newKeyId = () => base62(randomBytes(16));

/** What is stored of a key. A key has 256 random bits, so a plain hash cannot be searched. */
export function hashToken(token: string): string {
  return `sha256$${createHash('sha256').update(token).digest('hex')}`;
}

export function maskToken(token: string): string {
  return `${token.slice(0, 4)}...${token.slice(-4)}`;
}

/** Lower-case letters and digits, for the wizard's hash and for slugs. */
export function randomLetters(length: number, alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}
