import {
  insertPersonalApiKey,
  lockUserKeys,
  type PersonalApiKeyRow,
  updatePersonalApiKey,
} from '../db/personal-api-keys.ts';
import type { Queryable } from '../db/pool.ts';
import { hashToken, maskToken, newKeyId, newPersonalApiKey } from './tokens.ts';

export const KEYS_PER_USER = 10;

/** The user already has the maximum number of keys. */
export class TooManyKeysError extends Error {
  override name = 'TooManyKeysError';
  constructor() {
    super(
      `You can only have ${KEYS_PER_USER} personal API keys. Remove an existing key before creating a new one.`,
    );
  }
}

export interface IssuedKey {
  row: PersonalApiKeyRow;
  /** The key itself. It is not stored, so it cannot be shown again. */
  value: string;
}

/** Creates a key for a user. Call it in a transaction. */
export async function issuePersonalApiKey(
  queryable: Queryable,
  input: {
    userId: number;
    label: string;
    scopes: string[];
    scopedTeams?: number[];
    scopedOrganizations?: string[];
    expiresAt?: string | null;
  },
): Promise<IssuedKey> {
  if ((await lockUserKeys(queryable, input.userId)) >= KEYS_PER_USER) throw new TooManyKeysError();
  const value = newPersonalApiKey();
  const row = await insertPersonalApiKey(queryable, {
    id: newKeyId(),
    user_id: input.userId,
    label: input.label,
    secure_value: hashToken(value),
    mask_value: maskToken(value),
    scopes: input.scopes,
    scoped_teams: input.scopedTeams ?? [],
    scoped_organizations: input.scopedOrganizations ?? [],
    expires_at: input.expiresAt ?? null,
  });
  return { row, value };
}

/** Replaces the value of a key, and returns the new one. The old value stops working at once. */
export async function rollPersonalApiKey(queryable: Queryable, id: string): Promise<string> {
  const value = newPersonalApiKey();
  await updatePersonalApiKey(queryable, id, {
    secure_value: hashToken(value),
    mask_value: maskToken(value),
    last_rolled_at: new Date().toISOString(),
  });
  return value;
}
