/** Finds which cohorts a project has, for products whose documents name cohorts. */
export { knownCohorts } from '../rows/definitions.ts';
