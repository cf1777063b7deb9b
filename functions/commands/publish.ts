import { type Transaction, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type DraftChange, draftChanges, draftedRow, draftSecrets } from '../reads/drafts.ts';
import { type DraftRow, deleteDraft } from '../rows/drafts.ts';
import {
  type FunctionFields,
  type FunctionKey,
  type FunctionRow,
  findFunction,
  type ShownFunctionRow,
  updateFunction,
} from '../rows/functions.ts';
import { checkToken, makeToken, type Previewed, TOKEN_MINUTES } from '../rules/publish-token.ts';
import { holdCohorts } from '../surroundings.ts';
import { auditFunction, functionChanges } from './audit.ts';
import { MOST_TRIES, RETRY_SECONDS, stale, tooManyTries } from './change.ts';
import type { FunctionCommandDependencies } from './dependencies.ts';
import { isSameDraft, lockDraft, type ReadDraft, readDraft } from './draft.ts';
import { requireMappingRoom } from './mapping-room.ts';
import { mergeContent, prepareContent } from './prepare.ts';
import { refusing } from './refusals.ts';
import { compareContent, recordRevision } from './revisions.ts';
import { requireSiteRoom } from './site-room.ts';

/** What publishing a draft would change, and the token that confirms that somebody has seen it. */
export interface Preview {
  draftUpdatedAt: string;
  changes: DraftChange[];
  token: string;
}

const noDraft = () => refuse.invalid(null, 'This function has no staged draft to publish.');

const previewedOf = (row: FunctionRow, draft: DraftRow | undefined): Previewed => ({
  ...{ functionId: row.id, updatedAt: row.updated_at, draftUpdatedAt: draft?.updated_at ?? null },
});

/** Says what publishing the draft of a function would change. Nothing changes. */
export async function previewDraft(
  deps: Pick<FunctionCommandDependencies, 'pool' | 'keyring'>,
  key: FunctionKey,
): Promise<Preview> {
  const { row, draft } = await readDraft(deps, key);
  if (!draft) throw noDraft();
  return {
    draftUpdatedAt: draft.updated_at,
    changes: await refusing(() => draftChanges(deps.keyring, row, draft)),
    token: makeToken(row.publish_key, previewedOf(row, draft), Date.now()),
  };
}

/**
 * Makes the draft of a function what runs. It is compiled once more from its source, before the transaction: what its
 * filters name may have changed. A function that runs needs the token of a preview, and so does one that somebody has
 * changed since the draft began: publishing would undo that change unseen.
 */
export async function publishDraft(
  deps: FunctionCommandDependencies,
  actor: Actor,
  key: FunctionKey,
  token: string | undefined,
  signal?: AbortSignal,
): Promise<ShownFunctionRow> {
  let first: DraftRow | undefined;
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const read = await readDraft(deps, key);
    const { row, draft } = read;
    if (token !== undefined) requireToken(row, draft, token);
    if (!draft) throw first ? stale('the draft') : noDraft();
    first ??= draft;
    if (first.updated_at !== draft.updated_at) throw stale('the draft');
    if (token === undefined) refuseUnseen(row, draft);
    const prepared = await refusing(() => prepare(deps, row, draft, signal));
    signal?.throwIfAborted();
    const published = await transaction(deps.pool, async (client) => {
      if (!isSameDraft(read, await lockDraft(client, key))) return undefined;
      return store(client, deps, actor, read, prepared);
    });
    if (published) return published;
  }
  throw tooManyTries();
}

/** Refuses a token that confirms nothing, or something else than what there is now. */
function requireToken(row: FunctionRow, draft: DraftRow | undefined, token: string): void {
  const found = checkToken(row.publish_key, token, previewedOf(row, draft), Date.now());
  if (found === 'valid') return;
  if (found === 'stale') throw stale('the draft or the function');
  throw refuse.invalid(
    'confirm_token',
    found === 'expired'
      ? `The token is older than ${TOKEN_MINUTES} minutes. Preview the draft again to get another one.`
      : 'This is no token of this function. Preview the draft to get one.',
  );
}

/** Refuses to publish without a token where somebody must have seen what publishing changes. */
function refuseUnseen({ enabled, version }: FunctionRow, draft: DraftRow): void {
  if (enabled) {
    throw refuse.invalid(
      'confirm_token',
      'This function is enabled. Preview the draft first, and send the token of the preview.',
      { code: 'required' },
    );
  }
  if (version === draft.base_version) return;
  throw refuse.contested(
    'The function has changed since its draft began. Preview the draft to see what it would undo, and send the token of ' +
      'the preview.',
    RETRY_SECONDS,
    'stale_update',
  );
}

function prepare(
  deps: FunctionCommandDependencies,
  row: FunctionRow,
  draft: DraftRow,
  signal: AbortSignal | undefined,
) {
  const { all: secrets } = draftSecrets(deps.keyring, row, draft);
  const subject = { projectId: row.project_id, functionId: row.id, current: row, secrets };
  const content = mergeContent(draftedRow(row, draft), {});
  return prepareContent(deps, subject, row.type, content, row.enabled, signal);
}

async function store(
  client: Transaction,
  deps: Pick<FunctionCommandDependencies, 'keyring' | 'cohorts'>,
  actor: Actor,
  { row: before }: ReadDraft,
  prepared: Partial<FunctionFields>,
): Promise<ShownFunctionRow> {
  const key = { projectId: before.project_id, functionId: before.id };
  const { keyring } = deps;
  const { isOther, secretsReplaced } = await compareContent(keyring, before, prepared);
  const isNew = isOther || secretsReplaced;
  if (before.enabled) {
    await requireSiteRoom(client, key, prepared.transpiled);
    await requireMappingRoom(client, key, prepared.mappings);
  }
  await holdCohorts(client, deps, before.project_id, prepared.compiled_from);
  await updateFunction(client, key, { ...prepared, ...(isNew ? { version: before.version + 1 } : {}) });
  await deleteDraft(client, key);
  const after = (await findFunction(client, key)) as ShownFunctionRow;
  if (isNew) await recordRevision(client, keyring, actor, before, after);
  const detail = functionChanges(before, after, secretsReplaced);
  await auditFunction(client, actor, key, 'published', detail);
  return after;
}
