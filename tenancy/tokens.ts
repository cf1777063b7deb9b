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

/**
 * Creates a personal API key (`phx_…`), which acts for a user in the management API. It is shown once and stored as a
 * hash.
 */
export const newPersonalApiKey = () => secret('phx');
/** Creates a project key (`phc_…`), which names the project in public requests. It is not a secret. */
export const newProjectToken = () => secret('phc');
/** Creates a secret token of a project (`phs_…`), which is meant to read the definitions of its feature flags. */
export const newProjectSecret = () => secret('phs');
/** Creates the id of a key. It is not a secret. */
export const newKeyId = () => base62(randomBytes(16));

/** Hashes a key for storage. A key has 256 random bits, so nobody can find it by trying keys against the hash. */
export function hashToken(token: string): string {
  return `sha256$${createHash('sha256').update(token).digest('hex')}`;
}

export function maskToken(token: string): string {
  return `${token.slice(0, 4)}...${token.slice(-4)}`;
}

/** Returns random characters of the alphabet. */
export function randomLetters(length: number, alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'): string {
  return Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join('');
}
