export { refusesQuery } from '../db/reading.ts';
export { columnsOf } from './columns.ts';
export {
  COMPILER_DEFAULTS,
  CompilerBusyError,
  type CompilerOptions,
  createCompiler,
  type ModelCompiler,
  stoppable,
} from './compiler.ts';
export {
  type ColumnSet,
  MODELS,
  type Model,
  ModelError,
  type ModelQuery,
  queryOfModel,
  type Source,
} from './model-query.ts';
export { type ModelOptions, modelQuery } from './models.ts';
export {
  countRows,
  estimate,
  planQuery,
  previewRows,
} from './query.ts';
export { planFault, queryFault } from './query-faults.ts';
export { readSelection } from './selection.ts';
