import type { Transaction } from '../../db/pool.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { isSameSecrets, openInputs, SECRETS_OF, sealSecrets } from '../reads/secrets.ts';
import { type FunctionFields, type FunctionRow, keyOf } from '../rows/functions.ts';
import { hasRevision, insertRevision, pruneRevisions } from '../rows/revisions.ts';
import { MOST_REVISIONS } from '../rules/limits.ts';
import { otherFields, sourceOf } from '../rules/source.ts';
import { refusing } from './refusals.ts';

/** How a change makes another version of a function. */
export interface ContentChange {
  /** Whether the function is made of something else. What is only compiled again does not count. */
  isOther: boolean;
  /** Whether a secret gets another value, appears or goes. */
  secretsReplaced: boolean;
}

/** Compares what a function is made of with what it is going to be made of. */
export async function compareContent(
  keyring: Keyring | undefined,
  before: FunctionRow,
  patch: Partial<FunctionFields>,
): Promise<ContentChange> {
  const after = { ...before, ...patch };
  const secretsReplaced =
    after.secrets !== before.secrets &&
    (await refusing(() => !isSameSecrets(openInputs(keyring, before), openInputs(keyring, after))));
  return { isOther: otherFields(sourceOf(before), sourceOf(after)).length > 0, secretsReplaced };
}

/**
 * Stores a version of a function, and with the first one also the version before it, so that it can come back. Call it in
 * the transaction of the change.
 */
export async function recordRevision(
  client: Transaction,
  keyring: Keyring | undefined,
  actor: Actor,
  before: FunctionRow,
  after: FunctionRow,
): Promise<void> {
  const key = keyOf(after);
  const snapshot = (row: FunctionRow) =>
    refusing(() => ({
      ...{ version: row.version, content: sourceOf(row), secret_keys: row.secret_keys },
      secrets: sealSecrets(keyring, SECRETS_OF.revision(row.id, row.version), openInputs(keyring, row)),
    }));
  if (!(await hasRevision(client, key, before.version))) {
    const first = await snapshot(before);
    await insertRevision(client, key, { ...first, created_by: null, created_at: before.updated_at });
  }
  const createdBy = actor.kind === 'user' ? actor.userId : null;
  await insertRevision(client, key, { ...(await snapshot(after)), created_by: createdBy });
  await pruneRevisions(client, key, MOST_REVISIONS);
}
