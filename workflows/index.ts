/** Every workflow of Sluice; the worker bundles this file. */
export { maintenance } from './maintenance.ts';
