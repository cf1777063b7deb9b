export { refusesQuery } from '../db/reading.ts';
export {
  COMPILER_DEFAULTS,
  CompilerBusyError,
  type CompilerOptions,
  createCompiler,
  type ModelCompiler,
  stoppable,
} from './compiler.ts';
export { requireEvents } from './filters.ts';
export { COLUMN_SETS, type ColumnSet, type FirstData, type Model, type TableRules } from './model.ts';
export { ModelError, type ModelQuery, queryOfModel } from './model-query.ts';
export { type ModelOptions, modelQuery } from './models.ts';
export {
  countRows,
  estimate,
  planQuery,
  previewRows,
} from './query.ts';
export { planFault, queryFault } from './query-faults.ts';
export {
  DEFAULT_MODEL,
  listed,
  MODEL_NAMES,
  MODELS,
  type ModelName,
  modelOf,
  modelsFor,
  namesOfModels,
} from './registry.ts';
export { readSelection } from './selection.ts';
export { rulesOf, type Source, type SourceRules, WHOLE_QUERY } from './source.ts';
