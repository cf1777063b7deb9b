import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';

/**
 * Envelope encryption: every secret has a random data key of its own (AES-256-GCM), which is wrapped by a key of
 * the keyring. Rotating the keyring re-wraps data keys and leaves the secrets' ciphertext alone. The context
 * (tenant, row, field) is authenticated, so a sealed value moved to another row does not open.
 *
 * Sealed form: `slc1.<key id>.<wrapped data key>.<ciphertext>`, the binary parts as nonce + tag + bytes, base64url.
 */
export interface Keyring {
  /** The id of the key that seals. */
  readonly primary: string;
  readonly keys: ReadonlyMap<string, Buffer>;
}

export class SecretError extends Error {
  override name = 'SecretError';
}

const FORMAT = 'slc1';
const ALGORITHM = 'aes-256-gcm';
const NONCE = 12;
const TAG = 16;

/** Parses `id:base64,id:base64`; the first key seals, all of them open. */
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
    if (keys.has(id)) throw new SecretError(`${place}: the id ${id} stands twice`);
    keys.set(id, key);
    primary ??= id;
  }
  return { primary: primary as string, keys };
}

/** An id that no other key has, so that a secret can tell which key it needs. */
export function newKeyId(): string {
  return `k${randomBytes(4).toString('hex')}`;
}

/** A new keyring entry, `id:base64`. */
export function generateKey(id: string): string {
  return `${id}:${randomBytes(32).toString('base64')}`;
}

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
    throw new SecretError('a sealed secret does not open: it was changed, or belongs to another place');
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

// The wrapped data key is bound to its key id, not to the context: re-wrapping needs no context.
const wrapContext = (keyId: string) => `${FORMAT}/${keyId}`;

export function seal(keyring: Keyring, secret: string, context: string): string {
  const dataKey = randomBytes(32);
  const wrapped = encrypt(keyOf(keyring, keyring.primary), dataKey, wrapContext(keyring.primary));
  return [FORMAT, keyring.primary, wrapped, encrypt(dataKey, Buffer.from(secret, 'utf8'), context)].join('.');
}

export function open(keyring: Keyring, sealed: string, context: string): string {
  const { keyId, wrapped, ciphertext } = split(sealed);
  const dataKey = decrypt(keyOf(keyring, keyId), wrapped, wrapContext(keyId));
  return decrypt(dataKey, ciphertext, context).toString('utf8');
}

/** The same secret under the keyring's first key; unchanged if it is already. */
export function rewrap(keyring: Keyring, sealed: string): string {
  const { keyId, wrapped, ciphertext } = split(sealed);
  if (keyId === keyring.primary) return sealed;
  const dataKey = decrypt(keyOf(keyring, keyId), wrapped, wrapContext(keyId));
  const rewrapped = encrypt(keyOf(keyring, keyring.primary), dataKey, wrapContext(keyring.primary));
  return [FORMAT, keyring.primary, rewrapped, ciphertext].join('.');
}

/** The id of the key that a sealed value needs. */
export function sealedBy(sealed: string): string {
  return split(sealed).keyId;
}
