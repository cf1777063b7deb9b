/** Every workflow of Sluice; the worker bundles this file. */
export { exportRun } from './export-run.ts';
export { maintenance } from './maintenance.ts';
export { notice } from './notice.ts';
