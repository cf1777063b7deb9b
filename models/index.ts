export { readSelection, type SelectionSchema } from './column-selection.ts';
export { columnsOf } from './columns.ts';
export type { EventOptions } from './events.ts';
export {
  type ColumnSet,
  MODELS,
  type Model,
  ModelError,
  type ModelQuery,
} from './model-query.ts';
export { type ModelOptions, modelQuery } from './models.ts';
export {
  countQuery,
  countRows,
  type Estimate,
  estimate,
  type Preview,
  planQuery,
  previewQuery,
  previewRows,
} from './query.ts';
export { planFault, queryFault, refusesQuery, type Written } from './query-faults.ts';
