import { isDeepStrictEqual } from 'node:util';
import { type Transaction, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { changes } from '../../tenancy/audit.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { featureOfFlag } from '../rows/early-access.ts';
import {
  type FlagFields,
  type FlagKey,
  type FlagRow,
  findFlag,
  hasFlags,
  isKeyTaken,
  listLinks,
  lockFlags,
  updateFlag,
} from '../rows/flags.ts';
import { cancelRolloutOf } from '../rows/rollouts.ts';
import { FLAG_LIMITS } from '../rules/limits.ts';
import { ENDINGS } from '../rules/rollouts.ts';
import { checkFilters } from '../validation/filters.ts';
import { auditFlag, loggedFlag } from './audit.ts';
import { checkAsks, checkCohorts, checkDependents, checkKey, checkSettings } from './check.ts';
import { archivedIsActive, taken } from './create.ts';
import type { FlagCommandDependencies, FlagInput } from './dependencies.ts';

/** A change also says what the user saw. */
export interface FlagChange extends FlagInput {
  /** The version that the user saw. */
  version?: number | undefined;
  /** The flag as the user saw it. */
  original_flag?: Record<string, unknown> | undefined;
  /** The filters take the place of all that were there. */
  replacesFilters?: boolean;
}

const RETRY_SECONDS = 1;

/** The plain form of a value, in which numbers of the same value are the same. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null));

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

/** The first key of the form `key-2`, `key-3` … that is free. */
async function freeKey(client: Transaction, projectId: number, key: string, id: number): Promise<string> {
  let candidate = key;
  for (let number = 2; await isKeyTaken(client, projectId, candidate, id); number += 1) {
    candidate = `${key.slice(0, FLAG_LIMITS.keyCharacters - 8)}-${number}`;
  }
  return candidate;
}

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

/** Changes a flag. `deleted` deletes it, and brings it back. Of its filters, those that are given are replaced. */
export const changeFlag = (
  deps: FlagCommandDependencies,
  actor: Actor,
  key: FlagKey,
  change: FlagChange,
): Promise<FlagRow> => transaction(deps.pool, (client) => changeFlagIn(client, deps, actor, key, change));

/** Changes a flag as a part of a transaction. The activity log also has what is given `about` the change. */
export async function changeFlagIn(
  client: Transaction,
  deps: Pick<FlagCommandDependencies, 'knownCohorts'>,
  actor: Actor,
  key: FlagKey,
  change: FlagChange,
  about: Record<string, unknown> = {},
): Promise<FlagRow> {
  const { projectId, flagId } = key;
  if (change.key !== undefined) checkKey(change.key);
  await lockFlags(client, projectId);
  const before = await findFlag(client, key);
  const returns = before?.deleted === true && change.deleted === false;
  if (!before || (before.deleted && !returns)) throw refuse.absent();
  checkConflict(before, change);
  const { filters: newFilters, ...input } = wanted(change);
  const fields: FlagFields = { ...before, ...given(input) };
  const isRemoteConfiguration = fields.is_remote_configuration;
  if (newFilters !== undefined && Object.keys(newFilters).length > 0) {
    const stored = parseExactJson(before.filters) as Record<string, unknown>;
    const merged = change.replacesFilters ? newFilters : { ...stored, ...newFilters };
    const checked = checkFilters(merged, { isNew: false, isRemoteConfiguration });
    await checkCohorts(deps, client, projectId, checked.cohorts);
    fields.filters = JSON.stringify(checked.filters);
  }
  if (returns) {
    if (await hasFlags(client, projectId, FLAG_LIMITS.flags)) {
      throw refuse.invalid(null, `A project may have ${FLAG_LIMITS.flags} feature flags.`, {
        code: 'limit',
      });
    }
    fields.key = change.key ?? (await freeKey(client, projectId, before.key, flagId));
  }
  if (!fields.deleted && (await isKeyTaken(client, projectId, fields.key, flagId))) throw taken();
  checkSettings(fields);
  await checkStates(client, before, fields);
  const after = await updateFlag(client, key, fields, actor.kind === 'user' ? actor.userId : null);
  if (!after) throw refuse.absent();
  if (after.deleted) await cancelRolloutOf(client, key, ENDINGS.deleted);
  const what = after.deleted ? 'deleted' : 'updated';
  const detail = { name: after.key, ...changes(loggedFlag(before), loggedFlag(after)), ...about };
  await auditFlag(client, actor, after, what, detail);
  return after;
}

/** Refuses states that contradict each other, and what breaks flags that depend on this one. */
async function checkStates(client: Transaction, before: FlagRow, fields: FlagFields): Promise<void> {
  if (fields.archived && fields.active) {
    throw before.archived
      ? refuse.invalid('active', 'Cannot enable an archived feature flag. Unarchive it first.')
      : archivedIsActive();
  }
  const links = await listLinks(client, before.project_id);
  if (fields.deleted) {
    checkDependents(before.id, links, 'delete');
    const feature = await featureOfFlag(client, { projectId: before.project_id, flagId: before.id });
    if (feature !== undefined) {
      const message = `Cannot delete a feature flag that is linked to an early access feature: ${feature}. Delete the feature first.`;
      throw refuse.invalid('deleted', message);
    }
    return;
  }
  if (before.active && !fields.active) checkDependents(before.id, links, 'disable');
  if (!before.archived && fields.archived) checkDependents(before.id, links, 'archive');
  if (fields.filters === before.filters && fields.active === before.active && !before.deleted) return;
  const asks = asksOf(parseExactJson(fields.filters));
  checkAsks({ id: before.id, key: fields.key, active: fields.active, asks }, links);
}

/** The flags that checked filters ask about. */
function asksOf(filters: unknown): number[] {
  const groups =
    (filters as { groups?: { properties?: { type?: unknown; key?: unknown }[] }[] }).groups ?? [];
  const properties = groups.flatMap((one) => one?.properties ?? []);
  return properties.filter((one) => one?.type === 'flag').map((one) => Number(one.key));
}

/** Leaves out the keys without a value. */
const given = <T extends object>(input: T) =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)) as Partial<FlagFields>;
