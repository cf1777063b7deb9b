/** Finds which cohorts a project has, and whether their members are known, for products whose documents name cohorts. */
export { type CohortState, cohortStates, knownCohorts } from '../rows/definitions.ts';
