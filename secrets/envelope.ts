import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto';
import { PlainError } from '../values/plain-error.ts';

/**
 * Envelope encryption. Each secret is encrypted (AES-256-GCM) with a random data key of its own, and the data key is
 * encrypted ("wrapped") with a key of the keyring. When the keyring gets a new key, only data keys are encrypted again.
 * The context (tenant, row, field) is authenticated, so a sealed value that is moved to another row cannot be opened.
 *
 * Sealed form: `slc1.<key id>.<wrapped data key>.<ciphertext>`, the binary parts as nonce + tag + bytes, base64url.
 */
export interface Keyring {
  /** The id of the key that seals new secrets. */
  readonly primary: string;
  readonly keys: ReadonlyMap<string, Buffer>;
}

export class SecretError extends PlainError {
  override readonly name = 'SecretError';
}

const FORMAT = 'slc1';
const ALGORITHM = 'aes-256-gcm';
const NONCE = 12;
const TAG = 16;

/** Parses `id:base64,id:base64`. The first key seals secrets, and each key can open them. */
export function parseKeyring(text: string): Keyring {
  const keys = new Map<string, Buffer>();
  let primary: string | undefined;
  for (const [index, entry] of text.split(',').entries()) {
    const match = /^\s*([A-Za-z0-9_-]{1,32}):([A-Za-z0-9+/_-]+={0,2})\s*$/.exec(entry);
    const place = `SLUICE_ENCRYPTION_KEYS, key ${index + 1}`;
    if (!match)
      throw new SecretError(`${place}: expected id:base64, the id made of letters, digits, - and _`);
    const [, id, encoded] = match as unknown as [string, string, string];
    const key = Buffer.from(encoded, 'base64');
    if (key.length !== 32)
      throw new SecretError(`${place} (${id}): the key has ${key.length} bytes, 32 are needed`);
    if (keys.has(id)) throw new SecretError(`${place}: the id ${id} appears twice`);
    keys.set(id, key);
    primary ??= id;
  }
  return { primary: primary as string, keys };
}

/** Creates a random id for a key. A sealed secret contains the id of the key that it needs. */
export function newKeyId(): string {
  return `k${randomBytes(4).toString('hex')}`;
}

/** Creates a keyring entry with a new key: `id:base64`. */
export function generateKey(id: string): string {
  return `${id}:${randomBytes(32).toString('base64')}`;
}

/** Returns what tells a key apart from others and says nothing about it: a key has 256 random bits. */
function fingerprintOf(key: Buffer): string {
  return createHash('sha256').update('sluice key fingerprint').update(key).digest('hex').slice(0, 16);
}

/** The keys of a keyring, the one that seals first. */
const inOrder = ({ primary, keys }: Keyring) =>
  [...keys].sort(([left], [right]) => Number(right === primary) - Number(left === primary));

/** What others may know of a keyring: ids and fingerprints, the key that seals first. */
export const marksOf = (keyring: Keyring): { id: string; fingerprint: string }[] =>
  inOrder(keyring).map(([id, key]) => ({ id, fingerprint: fingerprintOf(key) }));

/** Writes a keyring as a setting or a file has it, with one text between the keys. */
export const formatKeyring = (keyring: Keyring, between: string): string =>
  inOrder(keyring)
    .map(([id, key]) => `${id}:${key.toString('base64')}`)
    .join(between);

function encrypt(key: Buffer, plain: Buffer, context: string): string {
  const nonce = randomBytes(NONCE);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG }).setAAD(Buffer.from(context));
  const bytes = Buffer.concat([cipher.update(plain), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), bytes]).toString('base64url');
}

function decrypt(key: Buffer, text: string, context: string): Buffer {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.length < NONCE + TAG) throw new SecretError('a sealed secret is damaged: it is too short');
  const decipher = createDecipheriv(ALGORITHM, key, bytes.subarray(0, NONCE), { authTagLength: TAG })
    .setAAD(Buffer.from(context))
    .setAuthTag(bytes.subarray(NONCE, NONCE + TAG));
  try {
    return Buffer.concat([decipher.update(bytes.subarray(NONCE + TAG)), decipher.final()]);
  } catch {
    throw new SecretError(
      'a sealed secret cannot be opened: it was changed, or it belongs to another row or field',
    );
  }
}

function split(sealed: string): { keyId: string; wrapped: string; ciphertext: string } {
  const [format, keyId, wrapped, ciphertext, ...rest] = sealed.split('.');
  if (format !== FORMAT || !keyId || !wrapped || !ciphertext || rest.length > 0) {
    throw new SecretError('a sealed secret is damaged: it does not have the expected form');
  }
  return { keyId, wrapped, ciphertext };
}

function keyOf(keyring: Keyring, keyId: string): Buffer {
  const key = keyring.keys.get(keyId);
  if (!key) {
    throw new SecretError(
      `a secret is sealed with the key "${keyId}", which SLUICE_ENCRYPTION_KEYS does not contain; add it back`,
    );
  }
  return key;
}

// The context of a data key is the id of its key, so re-wrapping does not need the context of the secret.
const wrapContext = (keyId: string) => `${FORMAT}/${keyId}`;

/** Seals a secret with the first key of the keyring. It opens in the same context only. */
export function seal(keyring: Keyring, secret: string, context: string): string {
  const dataKey = randomBytes(32);
  const wrapped = encrypt(keyOf(keyring, keyring.primary), dataKey, wrapContext(keyring.primary));
  return [FORMAT, keyring.primary, wrapped, encrypt(dataKey, Buffer.from(secret, 'utf8'), context)].join('.');
}

/**
 * Opens a sealed secret. Throws a SecretError if the keyring lacks its key, or if the value or its context was changed.
 */
export function open(keyring: Keyring, sealed: string, context: string): string {
  const { keyId, wrapped, ciphertext } = split(sealed);
  const dataKey = decrypt(keyOf(keyring, keyId), wrapped, wrapContext(keyId));
  return decrypt(dataKey, ciphertext, context).toString('utf8');
}

/**
 * Wraps the data key of a sealed secret with the first key of the keyring. Returns the value unchanged if it has that
 * key.
 */
export function rewrap(keyring: Keyring, sealed: string): string {
  const { keyId, wrapped, ciphertext } = split(sealed);
  if (keyId === keyring.primary) return sealed;
  const dataKey = decrypt(keyOf(keyring, keyId), wrapped, wrapContext(keyId));
  const rewrapped = encrypt(keyOf(keyring, keyring.primary), dataKey, wrapContext(keyring.primary));
  return [FORMAT, keyring.primary, rewrapped, ciphertext].join('.');
}

/** Answers whether a stored value is sealed. */
export function isSealed(value: string): boolean {
  return value.startsWith(`${FORMAT}.`);
}

/** Returns the id of the key that a sealed value needs. */
export function sealedBy(sealed: string): string {
  return split(sealed).keyId;
}
