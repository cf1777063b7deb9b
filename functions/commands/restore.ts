import { transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { draftedRow, draftSecrets, effectiveSecrets } from '../reads/drafts.ts';
import {
  counterpart,
  isSameSecrets,
  NO_SECRETS,
  openSecrets,
  SECRETS_OF,
  type SecretInputs,
} from '../reads/secrets.ts';
import { type FunctionKey, findFunction, type ShownFunctionRow } from '../rows/functions.ts';
import { findRevision, type RevisionRow } from '../rows/revisions.ts';
import type { StoredInputs } from '../rules/definition.ts';
import { auditDraft } from './audit.ts';
import { RETRY_SECONDS, stale } from './change.ts';
import type { FunctionCommandDependencies } from './dependencies.ts';
import { lockDraft, type ReadDraft, readDraft, writeDraft } from './draft.ts';
import { compileContent, mergeContent } from './prepare.ts';
import { refusing } from './refusals.ts';

export interface Restoring {
  /** Whether it takes the place of a draft. */
  overwrite: boolean;
  /** Whether the secrets of the revision come back as well. Otherwise only those that the function no longer has. */
  withSecrets: boolean;
  /** When the draft that it may overwrite was last saved, as the user knows it. */
  base_updated_at?: string | undefined;
}

/**
 * Makes a revision of a function its draft. What runs stays as it is until the draft is published. A revision that cannot
 * be compiled any more is refused, as a change is.
 */
export async function restoreRevision(
  deps: FunctionCommandDependencies,
  actor: Actor,
  key: FunctionKey,
  version: number,
  { overwrite, withSecrets, base_updated_at: base }: Restoring,
  signal?: AbortSignal,
): Promise<ShownFunctionRow> {
  const { pool, keyring } = deps;
  const wanted = await findRevision(pool, key, version);
  if (wanted) await checkRevision(deps, await readDraft(deps, key), wanted, withSecrets, signal);
  return transaction(pool, async (client) => {
    const locked = await lockDraft(client, key);
    const { row, draft } = locked;
    const revision = await findRevision(client, key, version);
    if (!revision) throw refuse.absent('No such revision for this function.');
    if (draft && !overwrite) {
      throw refuse.contested(
        'This function has a draft. Publish or discard it first, or set `overwrite` to replace it by the revision.',
        RETRY_SECONDS,
        'draft_exists',
      );
    }
    if (draft && base !== undefined && Date.parse(base) < Date.parse(draft.updated_at)) {
      throw stale('the draft');
    }
    await refusing(async () => {
      const { live, own: before } = draftSecrets(keyring, row, draft);
      const saved = openSecrets(keyring, SECRETS_OF.revision(row.id, version), revision.secrets);
      const own = withSecrets ? saved : missingIn(live, saved);
      await writeDraft(client, keyring, row, { content: revision.content, own, baseVersion: row.version });
      const secretsReplaced = !isSameSecrets(draft ? before : NO_SECRETS, own);
      await auditDraft(client, actor, 'revision_restored', locked, { secretsReplaced, version });
    });
    return (await findFunction(client, key)) as ShownFunctionRow;
  });
}

/** Checks and compiles a revision, with the secrets that it would have. */
async function checkRevision(
  deps: FunctionCommandDependencies,
  { row }: ReadDraft,
  { content, secrets, version }: RevisionRow,
  withSecrets: boolean,
  signal: AbortSignal | undefined,
): Promise<void> {
  const merged = mergeContent(draftedRow(row, { content }), {});
  const all = await refusing(() => {
    const { live } = draftSecrets(deps.keyring, row, undefined);
    const saved = openSecrets(deps.keyring, SECRETS_OF.revision(row.id, version), secrets);
    return effectiveSecrets(live, withSecrets ? saved : missingIn(live, saved), merged);
  });
  const subject = { projectId: row.project_id, current: row, secrets: all };
  await compileContent(deps, subject, row.type, merged, row.enabled, signal);
}

/** The secrets of a revision that a function no longer has. All others are as they are now: they may have been rotated. */
function missingIn(live: SecretInputs, saved: SecretInputs): SecretInputs {
  const missing = (now: StoredInputs, then: StoredInputs): StoredInputs =>
    Object.fromEntries(Object.entries(then).filter(([key]) => !Object.hasOwn(now, key)));
  return {
    inputs: missing(live.inputs, saved.inputs),
    mappings: saved.mappings.map(({ name, inputs }, index) => ({
      name,
      inputs: missing(counterpart(live.mappings, name, index)?.inputs ?? {}, inputs),
    })),
  };
}
