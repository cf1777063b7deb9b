/** Every workflow of Sluice; the worker bundles this file. */
export { exportBackfill } from './export-backfill.ts';
export { maintenance } from './maintenance.ts';
export { reconcileExports } from './reconcile-exports.ts';
export { verifyInterval } from './verify-interval.ts';
