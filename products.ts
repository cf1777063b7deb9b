import { ACTIONS } from './actions/manifest.ts';
import { ANNOTATIONS } from './annotations/manifest.ts';
import { COHORTS } from './cohorts/manifest.ts';
import { EXPORTS } from './exports/manifest.ts';
import { FLAGS } from './flags/manifest.ts';
import { FUNCTIONS } from './functions/manifest.ts';
import { INTEGRATIONS } from './integrations/manifest.ts';
import { QUERIES } from './queries/manifest.ts';
import { SURVEYS } from './surveys/manifest.ts';

/** The manifests of all products; see `tenancy/product.ts`. */
export const PRODUCTS = [
  EXPORTS,
  ACTIONS,
  INTEGRATIONS,
  FUNCTIONS,
  COHORTS,
  FLAGS,
  SURVEYS,
  QUERIES,
  ANNOTATIONS,
];

type Step = (typeof PRODUCTS)[number]['maintenance'][number];
/** What the maintenance of all products needs. */
export type ProductDependencies = Step['run'] extends (deps: infer Deps, work: never) => unknown
  ? Deps
  : never;
