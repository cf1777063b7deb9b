import { type Keyring, open, seal } from '../../secrets/envelope.ts';
import { isEncryptedMark } from '../rules/encrypted-mark.ts';

/** Payloads by the key of their variant, or by `true`. Each is a JSON text. */
export type Payloads = Readonly<Record<string, string>>;

/** There are no encryption keys. */
export class NoKeysError extends Error {
  override name = 'NoKeysError';
}

const contextOf = (flagId: number) => `feature_flags/${flagId}/payloads`;

function needed(keyring: Keyring | undefined): Keyring {
  if (keyring) return keyring;
  throw new NoKeysError(
    'There are no encryption keys (SLUICE_ENCRYPTION_KEYS) for the payloads of feature flags.',
  );
}

/** Seals the payloads of a flag. Throws a NoKeysError if there are no keys. */
export const sealPayloads = (keyring: Keyring | undefined, flagId: number, payloads: Payloads): string =>
  seal(needed(keyring), JSON.stringify(payloads), contextOf(flagId));

/** Opens the payloads of a flag. */
export function openPayloads(
  keyring: Keyring | undefined,
  flag: { id: number; sealed_payloads: string | null },
): Payloads {
  if (flag.sealed_payloads === null) return {};
  return JSON.parse(open(needed(keyring), flag.sealed_payloads, contextOf(flag.id)));
}

/** Whether given payloads are those that are stored: nothing but marks, for the same variants. */
export const areKept = (given: Payloads, kept: readonly string[]): boolean =>
  Object.values(given).every(isEncryptedMark) &&
  Object.keys(given).length === kept.length &&
  kept.every((key) => Object.hasOwn(given, key));
