import { type Pool, transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type FunctionRow, keyOf } from '../rows/functions.ts';
import { hasMoreWaiting, type ReplayRow } from '../rows/replays.ts';
import { repeatInvocations } from '../rows/reruns.ts';
import { hasRevision } from '../rows/revisions.ts';
import { MOST_WAITING } from '../rules/replay.ts';
import type { EndedStatus, RerunSelection, RerunVersion } from '../rules/rerun.ts';
import { typeOf } from '../rules/types.ts';
import { auditFunction } from './audit.ts';
import { type ReplayDependencies, startReplay } from './replay.ts';

/** The most invocations that one request names, and of one transaction. */
export const MOST_REPEATED = 10_000;
const AT_ONCE = 1_000;
const RETRY_SECONDS = 60;

export interface RerunOfSome {
  ids: readonly string[];
  /** Undefined: whatever they came to. */
  statuses: readonly EndedStatus[] | undefined;
  /** Null: whenever they ended. */
  window: { after: string; before: string } | null;
  version: RerunVersion;
}

/** Runs some ended invocations of a function again, each as a new one. Returns how many. */
export async function rerunInvocations(
  { pool }: { pool: Pool },
  actor: Actor,
  row: FunctionRow,
  { ids, statuses, window, version }: RerunOfSome,
): Promise<number> {
  requireRerunnable(row, false);
  const wanted = await versionOf(pool, row, version);
  const key = keyOf(row);
  if (await hasMoreWaiting(pool, key, MOST_WAITING)) {
    throw refuse.contested(
      `More than ${MOST_WAITING} invocations of this function wait. Run others again when fewer wait, or a range of time.`,
      RETRY_SECONDS,
    );
  }
  let queued = 0;
  for (let at = 0; at < ids.length; at += AT_ONCE) {
    const some = ids.slice(at, at + AT_ONCE);
    queued += await transaction(pool, async (client) => {
      const selected = { ids: some, statuses: statuses ?? null, window, version: wanted };
      const count = await repeatInvocations(client, key, selected);
      if (count > 0) await auditFunction(client, actor, key, 'rerun', { name: row.name, count, version });
      return count;
    });
  }
  return queued;
}

export interface RerunOfRange {
  /** Undefined: without a limit. */
  after: string | undefined;
  before: string | undefined;
  status: RerunSelection['status'];
  search: string | null;
  version: RerunVersion;
  ratePerSecond: number | null;
  dryRun: boolean;
}

/** Begins to run all invocations again that ended in a range of time, with a status. */
export async function rerunRange(
  deps: ReplayDependencies,
  actor: Actor,
  row: FunctionRow,
  { after, before, status, search, version, ratePerSecond, dryRun }: RerunOfRange,
): Promise<ReplayRow> {
  requireRerunnable(row, dryRun);
  if (after !== undefined && before !== undefined && Date.parse(after) >= Date.parse(before)) {
    throw refuse.invalid('before', 'The end of the range must be after its beginning, `after`.');
  }
  return startReplay(deps, actor, row, {
    ...{ id: uuidv7(), kind: 'rerun', dry_run: dryRun, after: after ?? null, before: before ?? null },
    ...{ selection: { status, search }, rate_per_second: ratePerSecond },
    version: await versionOf(deps.pool, row, version),
  });
}

function requireRerunnable(row: FunctionRow, dryRun: boolean): void {
  if (!typeOf(row.type).isQueued) {
    throw refuse.invalid(null, `Functions of type ${row.type} have no invocations that could run again.`);
  }
  if (row.enabled || dryRun) return;
  throw refuse.invalid(null, 'The function is disabled. Enable it, and run its invocations again.');
}

/** The version that runs. Null: of each invocation the one that ran before. */
async function versionOf(pool: Pool, row: FunctionRow, version: RerunVersion): Promise<number | null> {
  if (version === 'original') return null;
  if (version === 'current' || version === row.version) return row.version;
  if (await hasRevision(pool, keyOf(row), version)) return version;
  throw refuse.invalid('version', `Version ${version} of the function is not kept.`);
}
