import { type Transaction, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { draftedRow, draftSecrets, effectiveSecrets, ownSecrets } from '../reads/drafts.ts';
import {
  divideInputs,
  isSameSecrets,
  SECRETS_OF,
  type SecretInputs,
  sealSecrets,
  secretKeysOf,
} from '../reads/secrets.ts';
import { type DraftRow, deleteDraft, findDraft, putDraft } from '../rows/drafts.ts';
import {
  type FunctionKey,
  type FunctionRow,
  findFunction,
  findVersion,
  keyOf,
  type ShownFunctionRow,
  type VersionedFunction,
} from '../rows/functions.ts';
import { CONTENT, otherFields, type SourceContent, sourceOf } from '../rules/source.ts';
import { auditDraft, auditFunction } from './audit.ts';
import {
  changeFunction,
  draftWaits,
  type FunctionChange,
  MOST_TRIES,
  refuseOtherType,
  refuseOverwriting,
  refuseOverwritingSecrets,
  stale,
  storeChange,
  tooManyTries,
} from './change.ts';
import type { FunctionCommandDependencies } from './dependencies.ts';
import { checkOnError, compileContent, type FunctionInput, mergeContent } from './prepare.ts';
import { refusing } from './refusals.ts';

/** A function with its draft, as they were read before a transaction. */
export interface ReadDraft extends VersionedFunction {
  draft: DraftRow | undefined;
}

/** Reads a function that is not deleted, and its draft. */
export async function readDraft(
  { pool }: Pick<FunctionCommandDependencies, 'pool'>,
  key: FunctionKey,
): Promise<ReadDraft> {
  const read = await findVersion(pool, key);
  if (!read || read.row.deleted_at) throw refuse.absent();
  return { ...read, draft: await findDraft(pool, key) };
}

/** Locks a function. Returns it with its draft, as they are now. */
export async function lockDraft(client: Transaction, key: FunctionKey): Promise<ReadDraft> {
  const locked = await findVersion(client, key, { lock: true });
  if (!locked || locked.row.deleted_at) throw refuse.absent();
  return { ...locked, draft: await findDraft(client, key) };
}

/** Answers whether nobody has changed the function or its draft between two readings. */
export const isSameDraft = (one: ReadDraft, other: ReadDraft): boolean =>
  one.rowVersion === other.rowVersion && one.draft?.updated_at === other.draft?.updated_at;

/** A draft that was checked and can be stored. */
interface PreparedDraft {
  content: SourceContent;
  own: SecretInputs;
  before: SecretInputs;
}

/**
 * Keeps a change of what a function does as a draft, which does not run. All else in the change takes effect at once. The
 * draft is checked and compiled before the transaction. If somebody else changes other fields of the draft meanwhile, it
 * is computed again. If they change one of these fields, it is refused.
 */
export async function saveDraft(
  deps: FunctionCommandDependencies,
  actor: Actor,
  key: FunctionKey,
  change: FunctionChange,
  signal?: AbortSignal,
): Promise<ShownFunctionRow> {
  const { base_updated_at: base, ...input } = change;
  if (!CONTENT.some((field) => input[field] !== undefined)) {
    return changeFunction(deps, actor, key, change, signal);
  }
  const rest = Object.fromEntries(
    Object.entries(input).filter(([field, value]) => value !== undefined && !isContent(field)),
  ) as FunctionInput;
  let first: ReadDraft | undefined;
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const read = await readDraft(deps, key);
    const { row, draft } = read;
    const drafted = draftedRow(row, draft);
    first ??= read;
    if (base !== undefined && Date.parse(base) < Date.parse(draft?.updated_at ?? row.updated_at)) {
      throw stale(draft ? 'the draft' : 'the function');
    }
    refuseOverwriting(draftedRow(first.row, first.draft), drafted, input);
    if (first.draft?.secrets !== draft?.secrets) {
      const ownOf = (keyring: Keyring | undefined, one: ReadDraft) =>
        draftSecrets(keyring, one.row, one.draft).own;
      await refuseOverwritingSecrets(deps, [first, read], ownOf, input);
    }
    refuseOtherType(row, input);
    checkOnError(row.type, input);
    if (rest.enabled && !row.enabled) throw draftWaits();
    const prepared = await prepareDraft(deps, read, input, signal);
    signal?.throwIfAborted();
    const saved = await transaction(deps.pool, async (client) => {
      if (!isSameDraft(read, await lockDraft(client, key))) return undefined;
      if (Object.keys(rest).length > 0) await storeChange(client, deps, actor, row, rest, {});
      await storeDraft(client, deps.keyring, actor, read, prepared);
      return (await findFunction(client, key, { deleted: true })) as ShownFunctionRow;
    });
    if (saved) return saved;
  }
  throw tooManyTries();
}

const isContent = (field: string) => (CONTENT as readonly string[]).includes(field);

/** Checks and compiles what a draft is going to be. Only its source is kept, and the secrets that it replaces. */
async function prepareDraft(
  deps: FunctionCommandDependencies,
  { row, draft }: ReadDraft,
  input: FunctionInput,
  signal: AbortSignal | undefined,
): Promise<PreparedDraft> {
  const content = mergeContent(draftedRow(row, draft), input);
  const { live, own } = await refusing(() => draftSecrets(deps.keyring, row, draft));
  const subject = {
    projectId: row.project_id,
    current: row,
    secrets: effectiveSecrets(live, own, content),
  };
  const { compiled } = await compileContent(deps, subject, row.type, content, row.enabled, signal);
  return {
    content: sourceOf({ ...compiled, ...divideInputs(compiled) }),
    own: ownSecrets(compiled, content, own),
    before: own,
  };
}

async function storeDraft(
  client: Transaction,
  keyring: Keyring | undefined,
  actor: Actor,
  { row, draft }: ReadDraft,
  { content, own, before }: PreparedDraft,
): Promise<void> {
  const fields = otherFields(draft?.content ?? sourceOf(row), content);
  const secretsReplaced = !isSameSecrets(before, own);
  // What is sent again as it is makes neither a draft nor an entry of the log.
  if (fields.length === 0 && !secretsReplaced) return;
  await writeDraft(client, keyring, row, { content, own, baseVersion: draft?.base_version ?? row.version });
  await auditDraft(client, actor, 'draft_updated', { row, draft }, { secretsReplaced });
}

/** Seals and stores a draft. Call it in a transaction that holds the lock on the function. */
export async function writeDraft(
  client: Transaction,
  keyring: Keyring | undefined,
  row: FunctionRow,
  { content, own, baseVersion }: { content: SourceContent; own: SecretInputs; baseVersion: number },
): Promise<void> {
  const secrets = await refusing(() => sealSecrets(keyring, SECRETS_OF.draft(row.id), own));
  const secretKeys = secretKeysOf(own);
  await putDraft(client, keyOf(row), {
    ...{ content, secrets, secret_keys: secretKeys, base_version: baseVersion },
  });
}

/** Throws away the draft of a function. Without a draft, nothing happens. */
export async function discardDraft(
  { pool }: Pick<FunctionCommandDependencies, 'pool'>,
  actor: Actor,
  key: FunctionKey,
): Promise<ShownFunctionRow> {
  return transaction(pool, async (client) => {
    const { row } = await lockDraft(client, key);
    if (await deleteDraft(client, key)) {
      await auditFunction(client, actor, key, 'draft_discarded', { name: row.name });
    }
    return (await findFunction(client, key)) as ShownFunctionRow;
  });
}
