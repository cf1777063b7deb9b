import { isDeepStrictEqual } from 'node:util';
import { inChangeTurn } from '../../db/change-turns.ts';
import { type Transaction, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { changes } from '../../tenancy/audit.ts';
import { isObject } from '../../values/json-object.ts';
import { featuresOfFlags } from '../rows/early-access.ts';
import {
  type FlagFields,
  type FlagKey,
  type FlagRow,
  findFlag,
  findFlagVersion,
  freeFlagKey,
  isKeyTaken,
  listLinks,
  lockFlags,
  sizeOfFlags,
  updateFlag,
} from '../rows/flags.ts';
import { cancelRolloutsOf } from '../rows/rollouts.ts';
import { FLAG_LIMITS } from '../rules/limits.ts';
import { ENDINGS } from '../rules/rollouts.ts';
import { auditFlag, loggedFlag } from './audit.ts';
import { checkAsks, checkCohorts, checkDeletion, checkDependents, checkRoom } from './check.ts';
import { archivedIsActive, taken } from './create.ts';
import type { FlagChangeDependencies, FlagCommandDependencies, FlagInput } from './dependencies.ts';
import { type PreparedFlag, prepareFlag } from './prepare.ts';

/** A change also says what the user saw. */
export interface FlagChange extends FlagInput {
  /** The version that the user saw. */
  version?: number | undefined;
  /** The flag as the user saw it. */
  original_flag?: Record<string, unknown> | undefined;
  /** The filters take the place of all that were there. */
  replacesFilters?: boolean;
}

/** How often a change is computed again because somebody else has changed the flag meanwhile. */
const MOST_TRIES = 10;
const RETRY_SECONDS = 1;

/** What answers add to filters, for people. */
const ADDED = ['cohort_name', 'group_key_names'];

/** The plain form of a value, in which numbers of the same value are the same, without what answers add to it. */
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value ?? null), function (this: unknown, name, one) {
    return ADDED.includes(name) && isObject(this) && typeof this.type === 'string' ? undefined : one;
  });

/** Refuses a change of a field that somebody else has changed since the user saw it. */
function checkConflict(before: FlagRow, { version, original_flag: original, ...input }: FlagChange): void {
  if (version === undefined || original === undefined || version === before.version) return;
  const now: Record<string, unknown> = { ...before, filters: JSON.parse(before.filters) };
  const conflicting = Object.entries(input).some(([field, value]) => {
    if (value === undefined || !Object.hasOwn(original, field)) return false;
    const seen = plain(original[field]);
    const changedHere = !isDeepStrictEqual(plain(value), seen);
    const changedThere = !isDeepStrictEqual(plain(now[field]), seen);
    return changedHere && changedThere && !isDeepStrictEqual(plain(value), plain(now[field]));
  });
  if (!conflicting) return;
  const who = before.last_modified_by?.email ?? 'somebody';
  const message = `The feature flag was updated by ${who} since you started editing it. Please refresh and try again.`;
  throw refuse.contested(message, RETRY_SECONDS);
}

/** The room that `-2`, `-3` … takes in a key. */
const NUMBER_CHARACTERS = 8;

/** Leaves out what the user saw and did not change. */
function wanted({
  version: _,
  original_flag: original,
  replacesFilters: _all,
  ...input
}: FlagChange): FlagInput {
  if (!original) return input;
  return Object.fromEntries(
    Object.entries(input).filter(
      ([field, value]) =>
        !Object.hasOwn(original, field) || !isDeepStrictEqual(plain(value), plain(original[field])),
    ),
  );
}

/**
 * Changes a flag. `deleted` deletes it, and brings it back. Of its filters, those that are given are replaced. The change is
 * computed before the lock is taken, and computed again if somebody else has changed the flag meanwhile.
 */
export async function changeFlag(
  deps: FlagCommandDependencies,
  actor: Actor,
  key: FlagKey,
  change: FlagChange,
): Promise<FlagRow> {
  const { replacesFilters = false } = change;
  const tryOnce = async (): Promise<FlagRow | undefined> => {
    const before = await findFlagVersion(deps.pool, key);
    const returns = before?.row.deleted === true && change.deleted === false;
    if (!before || (before.row.deleted && !returns)) throw refuse.absent();
    checkConflict(before.row, change);
    const prepared = prepareFlag(deps, before.row, wanted(change), { replacesFilters });
    return transaction(deps.pool, async (client) => {
      await lockFlags(client, key.projectId);
      const current = await findFlagVersion(client, key);
      if (!current) throw refuse.absent();
      return current.version === before.version
        ? store(client, deps, actor, current.row, prepared, { key: change.key })
        : undefined;
    });
  };
  for (let tries = 0; tries < MOST_TRIES; tries += 1) {
    const after = await inChangeTurn(deps.pool, key.projectId, tryOnce);
    if (after) return after;
  }
  throw refuse.contested('Others are changing this feature flag at the same time. Try again.', RETRY_SECONDS);
}

/** Changes a flag as a part of a transaction. The activity log also has what is given `about` the change. */
export async function changeFlagIn(
  client: Transaction,
  deps: FlagChangeDependencies,
  actor: Actor,
  key: FlagKey,
  change: FlagChange,
  about: Record<string, unknown> = {},
): Promise<FlagRow> {
  const { replacesFilters = false } = change;
  await lockFlags(client, key.projectId);
  const before = await findFlag(client, key);
  const returns = before?.deleted === true && change.deleted === false;
  if (!before || (before.deleted && !returns)) throw refuse.absent();
  checkConflict(before, change);
  const prepared = prepareFlag(deps, before, wanted(change), { replacesFilters });
  return store(client, deps, actor, before, prepared, { key: change.key, about });
}

/** Stores a change of a flag, under the lock, after what concerns other flags and cohorts is checked. */
async function store(
  client: Transaction,
  deps: FlagChangeDependencies,
  actor: Actor,
  before: FlagRow,
  { fields, asks, cohorts, replacesSecrets }: PreparedFlag,
  { key: wantedKey, about = {} }: { key: string | undefined; about?: Record<string, unknown> },
): Promise<FlagRow> {
  const { id, project_id: projectId } = before;
  const returns = before.deleted && !fields.deleted;
  if (returns) {
    const base = before.key.slice(0, FLAG_LIMITS.keyCharacters - NUMBER_CHARACTERS);
    fields.key = wantedKey ?? (await freeFlagKey(client, projectId, { key: before.key, base, ownId: id }));
  }
  if (!fields.deleted) {
    if (await isKeyTaken(client, projectId, fields.key, id)) throw taken();
    if (returns || fields.filters !== before.filters) {
      await checkCohorts(deps, client, projectId, cohorts);
      if (returns || Buffer.byteLength(fields.filters) > Buffer.byteLength(before.filters)) {
        checkRoom(deps, await sizeOfFlags(client, projectId, id), fields.filters);
      }
    }
  }
  await checkStates(client, before, fields, asks);
  const key = { projectId, flagId: id };
  const after = await updateFlag(client, key, fields, actor.kind === 'user' ? actor.userId : null);
  if (!after) throw refuse.absent();
  if (after.deleted) await cancelRolloutsOf(client, projectId, [id], ENDINGS.deleted);
  await auditFlag(client, actor, after, after.deleted ? 'deleted' : 'updated', {
    name: after.key,
    ...changes(loggedFlag(before), loggedFlag(after)),
    ...(replacesSecrets ? { payloads_replaced: true } : {}),
    ...about,
  });
  return after;
}

/** Whether some condition of filters is about groups. */
const usesGroups = (filters: string): boolean =>
  (JSON.parse(filters) as { groups?: { aggregation_group_type_index?: unknown }[] }).groups?.some(
    (one) => typeof one.aggregation_group_type_index === 'number',
  ) ?? false;

/** Refuses states that contradict each other, and what breaks flags that depend on this one. */
async function checkStates(
  client: Transaction,
  before: FlagRow,
  fields: FlagFields,
  asks: readonly number[],
): Promise<void> {
  if (fields.archived && fields.active) {
    throw before.archived
      ? refuse.invalid('active', 'Cannot enable an archived feature flag. Unarchive it first.')
      : archivedIsActive();
  }
  const links = await listLinks(client, before.project_id);
  const feature = async () => (await featuresOfFlags(client, before.project_id, [before.id])).get(before.id);
  if (fields.deleted) return checkDeletion(before.id, links, await feature());
  if (fields.filters !== before.filters && usesGroups(fields.filters)) {
    const named = await feature();
    if (named !== undefined) {
      const message =
        'Cannot use group aggregation in any condition set when the flag is linked to an Early Access Feature.';
      const reason = `The early access feature ${named} has this flag, and persons enrol.`;
      throw refuse.invalid('filters', message, { reason });
    }
  }
  if (before.active && !fields.active) checkDependents(before.id, links, 'disable');
  if (!before.archived && fields.archived) checkDependents(before.id, links, 'archive');
  if (fields.filters === before.filters && fields.active === before.active && !before.deleted) return;
  checkAsks({ id: before.id, key: fields.key, active: fields.active, asks }, links);
}
