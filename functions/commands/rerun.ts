import { type Pool, transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type FunctionKey, type FunctionRow, keyOf } from '../rows/functions.ts';
import {
  countRepeatable,
  dismissInvocations,
  type InvocationSelection,
  repeatInvocations,
} from '../rows/history.ts';
import { hasRevision } from '../rows/revisions.ts';
import { auditFunction } from './audit.ts';

/** The most invocations of one request, and of one transaction. */
export const MOST_REPEATED = 10_000;
const AT_ONCE = 1_000;

export type Selected = Omit<InvocationSelection, keyof FunctionKey | 'isOpen'>;

export interface Rerun extends Selected {
  /** Which version runs. `original`: the one that ran before. */
  version: 'original' | 'current' | number;
}

export interface Rerunning {
  queued: number;
  /** Ids that name no invocation of this function that could be run again. */
  skipped: number;
  /** Whether there are more. */
  isMore: boolean;
}

/** Runs ended invocations of a function again, each as a new one. What has been run again already is left out. */
export async function rerunInvocations(
  { pool }: { pool: Pool },
  actor: Actor,
  row: FunctionRow,
  { version, ...selected }: Rerun,
): Promise<Rerunning> {
  if (!row.enabled)
    throw refuse.invalid(null, 'The function is disabled. Enable it, and run its invocations again.');
  const key = keyOf(row);
  const wanted = version === 'original' ? null : version === 'current' ? row.version : version;
  if (wanted !== null && wanted !== row.version && !(await hasRevision(pool, key, wanted))) {
    throw refuse.invalid('version', `Version ${wanted} of the function is not kept.`);
  }
  const selection = { ...key, ...selected };
  const most = Math.min(MOST_REPEATED, selected.ids?.length ?? MOST_REPEATED);
  let queued = 0;
  while (queued < most) {
    const limit = Math.min(AT_ONCE, most - queued);
    const made = await transaction(pool, async (client) => {
      const count = await repeatInvocations(client, selection, { version: wanted, limit });
      if (count > 0) await auditFunction(client, actor, key, 'rerun', { name: row.name, count, version });
      return count;
    });
    queued += made;
    if (made < limit) break;
  }
  const isMore = queued === MOST_REPEATED && (await countRepeatable(pool, selection, 1)) > 0;
  return { queued, skipped: selected.ids ? new Set(selected.ids).size - queued : 0, isMore };
}

/** Takes failed invocations out of the list of those that somebody has to look at. Returns how many. */
export async function dismissFailed(
  { pool }: { pool: Pool },
  actor: Actor,
  row: FunctionRow,
  selected: Selected,
): Promise<number> {
  const key = keyOf(row);
  let dismissed = 0;
  for (;;) {
    const count = await transaction(pool, async (client) => {
      const made = await dismissInvocations(client, { ...key, ...selected }, AT_ONCE);
      if (made > 0) await auditFunction(client, actor, key, 'dismissed', { name: row.name, count: made });
      return made;
    });
    dismissed += count;
    if (count < AT_ONCE || dismissed >= MOST_REPEATED) return dismissed;
  }
}
