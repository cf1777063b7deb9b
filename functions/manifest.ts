import type { Product } from '../tenancy/product.ts';
import { LOCK_KINDS } from './rows/locks.ts';
import { type FunctionRunDependencies, recompileFunctions } from './runs/recompile.ts';

/** Describes functions to the rest of Sluice. */
export const FUNCTIONS: Product<{ functions: FunctionRunDependencies }> = {
  name: 'functions',
  docs: 'docs/functions.md',
  tables: [
    { name: 'functions', kind: 'configuration' },
    { name: 'function_logs', kind: 'configuration' },
    { name: 'function_metrics', kind: 'configuration' },
  ],
  sealed: [{ table: 'functions', column: 'secrets' }],
  scopes: ['hog_function'],
  lockKinds: LOCK_KINDS,
  maintenance: [
    {
      name: 'recompileFunctions',
      summary: 'functions compiled again',
      run: ({ functions }, work) => recompileFunctions(functions, work),
    },
  ],
};
