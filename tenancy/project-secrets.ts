import type { SealedColumn } from '../db/sealed-columns.ts';
import { isSealed, type Keyring, open, SecretError, seal } from '../secrets/envelope.ts';

/** A secret moves from one of the two columns to the other, so both have one context. */
const contextOf = (projectId: number | string) => `projects/${projectId}/secret_api_token`;

/** The columns with secrets that belong to no product. */
export const CORE_SEALED: readonly SealedColumn[] = [
  { table: 'projects', column: 'secret_api_token', contextOf },
  { table: 'projects', column: 'secret_api_token_backup', contextOf },
];

/** Prepares the secret token of a project for storing. Throws a SecretError if there are no keys. */
export function sealProjectSecret(keyring: Keyring | undefined, projectId: number, token: string): string {
  if (!keyring) {
    throw new SecretError('There are no encryption keys, so the secret token of a project cannot be stored.');
  }
  return seal(keyring, token, contextOf(projectId));
}

/** Reads the secret token of a project. An older version may have stored it as it is. */
export function openProjectSecret(
  keyring: Keyring | undefined,
  projectId: number,
  stored: string | null,
): string | null {
  if (stored === null || !isSealed(stored)) return stored;
  if (!keyring) throw new SecretError('There are no encryption keys to read the secret token of a project.');
  return open(keyring, stored, contextOf(projectId));
}
