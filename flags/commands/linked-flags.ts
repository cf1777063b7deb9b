import type { Transaction } from '../../db/pool.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type FlagKey, findFlag } from '../rows/flags.ts';
import { changeFlagIn, type FlagChange } from './change.ts';
import type { FlagChangeDependencies } from './dependencies.ts';

/** Changes a flag that something else made, in its transaction. One that somebody has deleted stays as it is. */
export async function changeLinkedFlag(
  client: Transaction,
  deps: FlagChangeDependencies,
  actor: Actor,
  key: FlagKey,
  change: FlagChange,
): Promise<void> {
  const before = await findFlag(client, key);
  if (!before || before.deleted) return;
  const isSame = change.filters === undefined && !change.deleted && before.active === change.active;
  if (!isSame) await changeFlagIn(client, deps, actor, key, change);
}
