/** All workflows of Sluice. The worker bundles this file. */
export { exportBackfill } from './export-backfill.ts';
export { exportRun } from './export-run.ts';
export { flagChange, flagRollout } from './flag-plans.ts';
export { functionDispatch, functionRetries } from './function-backlog.ts';
export { functionBroadcast, functionReplay, functionRerun } from './function-replay.ts';
export { maintenance } from './maintenance.ts';
export { notice } from './notice.ts';
export { reconcileExports } from './reconcile-exports.ts';
export { upkeep } from './upkeep.ts';
export { verifyInterval } from './verify-interval.ts';
