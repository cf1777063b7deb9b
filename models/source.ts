import type { Model } from './model.ts';
import { type ModelName, modelOf } from './registry.ts';

/** What the rows of an export are: those of a model, or the whole result of a query. */
export type Source = ModelName | typeof WHOLE_QUERY;
export const WHOLE_QUERY = 'hogql';

/** What is known of the rows of an export, whatever they are. */
export type SourceRules = Pick<Model, 'name' | 'isOfEvents' | 'changes' | 'expires' | 'table'>;

/** Rows of a result have no key, and a query that runs again may give other ones. */
const RESULT: SourceRules = {
  name: WHOLE_QUERY,
  isOfEvents: false,
  changes: true,
  expires: false,
  table: { keys: [], newer: null, shortTexts: [] },
};

export const rulesOf = (source: Source): SourceRules => (source === WHOLE_QUERY ? RESULT : modelOf(source));
