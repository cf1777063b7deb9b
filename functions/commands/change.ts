import { isDeepStrictEqual } from 'node:util';
import { type Transaction, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { isSameSecrets, openInputs, type SecretInputs } from '../reads/secrets.ts';
import { findDraft } from '../rows/drafts.ts';
import {
  type FunctionFields,
  type FunctionKey,
  type FunctionRow,
  findFunction,
  findVersion,
  keyOf,
  type ShownFunctionRow,
  updateFunction,
} from '../rows/functions.ts';
import { revive } from '../rows/states.ts';
import { checkPolicy, storedPolicy } from '../rules/policy.ts';
import { CONTENT, otherFields, sourceOf } from '../rules/source.ts';
import { WATCHER } from '../rules/watcher.ts';
import { holdCohorts } from '../surroundings.ts';
import { auditFunction, functionChanges } from './audit.ts';
import { placeOf } from './create.ts';
import type { FunctionCommandDependencies } from './dependencies.ts';
import { requireMappingRoom } from './mapping-room.ts';
import {
  type ContentFields,
  checkOnError,
  type FunctionInput,
  mergeContent,
  prepareContent,
} from './prepare.ts';
import { refusing } from './refusals.ts';
import { compareContent, recordRevision } from './revisions.ts';
import { requireSiteRoom } from './site-room.ts';

/** A change also says which version of the function it is based on. */
export interface FunctionChange extends FunctionInput {
  /** When the function was last updated, as the user knows it. Refused if somebody has changed it since. */
  base_updated_at?: string | undefined;
}

/** How often a change is computed again because somebody else has changed other fields meanwhile. */
export const MOST_TRIES = 10;
export const RETRY_SECONDS = 1;

/**
 * Changes a function. The change is computed before the transaction, because that may take long. If somebody else
 * changes other fields meanwhile, it is computed again. If they change one of these fields, it is refused.
 */
export async function changeFunction(
  deps: FunctionCommandDependencies,
  actor: Actor,
  key: FunctionKey,
  change: FunctionChange,
  signal?: AbortSignal,
): Promise<ShownFunctionRow> {
  const { base_updated_at: base, ...input } = change;
  let first: FunctionRow | undefined;
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const read = await findVersion(deps.pool, key);
    if (!read || (read.row.deleted_at && input.deleted !== false)) throw refuse.absent();
    const { row } = read;
    first ??= row;
    if (base !== undefined && Date.parse(base) !== Date.parse(row.updated_at)) throw stale('the function');
    refuseOverwriting(first, row, input);
    if (first.secrets !== row.secrets) await refuseOverwritingSecrets(deps, [first, row], openInputs, input);
    refuseOtherType(row, input);
    checkOnError(row.type, input);
    const prepared = await prepare(deps, row, input, signal);
    signal?.throwIfAborted();
    const changed = await transaction(deps.pool, async (client) => {
      const current = await findVersion(client, key, { lock: true });
      if (!current) throw refuse.absent();
      if (current.rowVersion !== read.rowVersion) return undefined;
      return storeChange(client, deps, actor, row, input, prepared);
    });
    if (changed) return changed;
  }
  throw tooManyTries();
}

export const tooManyTries = () =>
  refuse.contested('Others are changing this function at the same time. Try again.', RETRY_SECONDS);

export const stale = (what: string) =>
  refuse.contested(
    `Somebody else has changed ${what} meanwhile. Read the function again, and repeat your change if it still fits.`,
    RETRY_SECONDS,
    'stale_update',
  );

const OTHER = [
  ...(['name', 'description', 'enabled', 'icon_url', 'execution_order'] as const),
  ...(['delivery', 'paused', 'on_error'] as const),
] as const;

/** Refuses a change of a field that somebody else changed while this change was being computed. */
export function refuseOverwriting(before: FunctionRow, now: FunctionRow, input: FunctionInput): void {
  if (before === now) return;
  // What was only compiled again was changed by nobody.
  for (const field of otherFields(sourceOf(before), sourceOf(now))) {
    if (input[field] !== undefined) throw stale(`\`${field}\``);
  }
  for (const field of OTHER) {
    if (input[field] !== undefined && !isDeepStrictEqual(before[field], now[field]))
      throw stale(`\`${field}\``);
  }
}

/** Refuses the same for secret inputs, which are changed with the others of their field. */
export async function refuseOverwritingSecrets<T>(
  { keyring }: Pick<FunctionCommandDependencies, 'keyring'>,
  [before, now]: readonly [before: T, now: T],
  secretsOf: (keyring: Keyring | undefined, one: T) => SecretInputs,
  { inputs, mappings }: FunctionInput,
): Promise<void> {
  const fields = [
    ...(inputs === undefined ? [] : ['inputs']),
    ...(mappings === undefined ? [] : ['mappings']),
  ];
  if (fields.length === 0) return;
  const isSame = await refusing(() => isSameSecrets(secretsOf(keyring, before), secretsOf(keyring, now)));
  if (!isSame) throw stale(fields.map((one) => `\`${one}\``).join(' or '));
}

export function refuseOtherType({ type }: FunctionRow, input: FunctionInput): void {
  if (input.type !== undefined && input.type !== type) {
    throw refuse.invalid('type', 'Cannot modify the type of an existing function');
  }
}

/** Compiles the function anew if the change may lead to other code. */
async function prepare(
  deps: FunctionCommandDependencies,
  row: FunctionRow,
  input: FunctionInput,
  signal: AbortSignal | undefined,
): Promise<Partial<ContentFields>> {
  const touches = CONTENT.some((field) => input[field] !== undefined);
  if (!touches && input.enabled === undefined && input.deleted !== false) return {};
  const subject = { projectId: row.project_id, functionId: row.id, current: row };
  const content = mergeContent(row, input);
  return prepareContent(deps, subject, row.type, content, input.enabled ?? row.enabled, signal);
}

/** Refuses to enable a function while a draft waits: it is not clear which of the two should run. */
export const draftWaits = () =>
  refuse.invalid('enabled', 'This function has a draft. Publish or discard the draft before you enable it.');

/** Stores a change that was prepared, and writes it down. The transaction holds the lock on the function. */
export async function storeChange(
  client: Transaction,
  deps: Pick<FunctionCommandDependencies, 'keyring' | 'cohorts'>,
  actor: Actor,
  before: FunctionRow,
  input: FunctionInput,
  prepared: Partial<ContentFields>,
): Promise<ShownFunctionRow> {
  const key = keyOf(before);
  checkPolicy(before.type, input);
  const enabled = input.enabled ?? before.enabled;
  const returns = before.deleted_at !== null && input.deleted === false;
  const enables = enabled && (!before.enabled || returns);
  if (enabled && !before.enabled && (await findDraft(client, key))) throw draftWaits();
  if (enabled && (enables || prepared.transpiled))
    await requireSiteRoom(client, key, prepared.transpiled ?? before.transpiled);
  if (enabled && (enables || prepared.mappings))
    await requireMappingRoom(client, key, prepared.mappings ?? before.mappings);
  if (!input.deleted) await holdCohorts(client, deps, before.project_id, prepared.compiled_from);
  const order = await placeOf(client, key, before.type, {
    order: input.execution_order === undefined ? null : input.execution_order,
    moves: returns || (enables && input.execution_order === undefined),
    enables,
  });
  const isMoved = input.execution_order !== undefined || order !== null;
  const patch: Partial<FunctionFields> = {
    ...prepared,
    ...(input.name === undefined ? {} : { name: input.name }),
    ...(input.description === undefined ? {} : { description: input.description }),
    ...(input.icon_url === undefined ? {} : { icon_url: input.icon_url }),
    ...(input.on_error ? { on_error: input.on_error } : {}),
    ...(input.delivery === undefined ? {} : { delivery: storedPolicy(input.delivery) }),
    ...(input.paused === undefined ? {} : { paused: input.paused }),
    ...{ enabled },
    ...(isMoved ? { execution_order: order } : {}),
    ...(input.deleted === undefined ? {} : { deleted_at: input.deleted ? new Date().toISOString() : null }),
  };
  const { isOther, secretsReplaced } = await compareContent(deps.keyring, before, prepared);
  if (isOther || secretsReplaced) patch.version = before.version + 1;
  await updateFunction(client, key, patch);
  // Whoever saves a function that was disabled because of its cost gets it back, on probation.
  if (enabled) await revive(client, key, WATCHER);
  const after = (await findFunction(client, key, { deleted: true })) as ShownFunctionRow;
  if (patch.version !== undefined) await recordRevision(client, deps.keyring, actor, before, after);
  const detail = functionChanges(before, after, secretsReplaced);
  const activity = input.deleted === true && !before.deleted_at ? 'deleted' : 'updated';
  if (detail.changes.length > 0) await auditFunction(client, actor, key, activity, detail);
  return after;
}
