import type { Pool } from '../db/pool.ts';
import type { VersionBounds } from '../db/versions.ts';
import type { Product } from '../tenancy/product.ts';
import { LOCK_KINDS } from './rows/locks.ts';
import { eventsWanted, noteLosses } from './rows/losses.ts';
import { cancelRestored } from './rows/restored.ts';
import { deleteOfPersons } from './rows/upkeep.ts';
import { diagnoseFunctions } from './runs/diagnose.ts';
import { registerBacklogMetrics } from './runs/metrics.ts';
import { type NoticeRunDependencies, tellOfFunctions } from './runs/notices.ts';
import { type FunctionRunDependencies, recompileFunctions } from './runs/recompile.ts';
import { mendReplays, type ReplayRunDependencies } from './runs/replays.ts';
import { cancelWaiting, keepFunctionVersions, keepHistory, type UpkeepDependencies } from './runs/upkeep.ts';

/** Describes functions to the rest of Sluice. */
export const FUNCTIONS: Product<{
  pool: Pool;
  versions: VersionBounds;
  functions: FunctionRunDependencies & UpkeepDependencies & ReplayRunDependencies & NoticeRunDependencies;
}> = {
  name: 'functions',
  docs: 'docs/functions.md',
  tables: [
    // In the order in which invocations move, so that none comes back.
    { name: 'function_floods', kind: 'data' },
    { name: 'function_positions', kind: 'data' },
    { name: 'function_forgotten_persons', kind: 'data' },
    { name: 'function_queue', kind: 'data' },
    { name: 'function_internal_events', kind: 'data' },
    { name: 'function_invocations', kind: 'data' },
    { name: 'function_late_batches', kind: 'data' },
    { name: 'function_losses', kind: 'data' },
    { name: 'function_masks', kind: 'data' },
    { name: 'function_replays', kind: 'data' },
    { name: 'function_replay_masks', kind: 'data' },
    { name: 'function_paces', kind: 'data' },
    { name: 'function_states', kind: 'data' },
    { name: 'function_projects', kind: 'data' },
    { name: 'function_drafts', kind: 'configuration' },
    { name: 'function_revisions', kind: 'configuration' },
    { name: 'functions', kind: 'configuration' },
    { name: 'function_logs', kind: 'configuration' },
    { name: 'function_metrics', kind: 'configuration' },
  ],
  sealed: ['functions', 'function_drafts', 'function_revisions'].map((table) => ({
    table,
    column: 'secrets',
  })),
  scopes: ['hog_function'],
  lockKinds: LOCK_KINDS,
  maintenance: [
    {
      name: 'recompileFunctions',
      summary: 'functions compiled again',
      run: ({ functions }, work) => recompileFunctions(functions, work),
    },
    {
      name: 'keepFunctionHistory',
      summary: 'rows of functions deleted',
      run: ({ functions }, work) => keepHistory(functions, work),
    },
    {
      name: 'keepFunctionVersions',
      summary: 'deleted functions and old versions forgotten',
      run: ({ pool, versions }, work) => keepFunctionVersions(pool, versions, work),
    },
    {
      name: 'cancelWaitingInvocations',
      summary: 'invocations to be cancelled',
      run: ({ functions }, work) => cancelWaiting(functions, work),
    },
    {
      name: 'mendReplays',
      summary: 'replays stirred or ended',
      run: ({ functions }, work) => mendReplays(functions, work),
    },
    {
      name: 'tellOfFunctions',
      summary: 'notices about functions sent',
      run: ({ functions }, work) => tellOfFunctions(functions, work),
    },
  ],
  registerMetrics: registerBacklogMetrics,
  diagnose: diagnoseFunctions,
  personsDeleted: deleteOfPersons,
  eventsWanted,
  eventsDropped: noteLosses,
  async restored(queryable) {
    const count = await cancelRestored(queryable);
    if (count === 0) return undefined;
    return `${count} invocations of functions waited when the backup was made. They are cancelled, so that nothing is sent twice.`;
  },
};
