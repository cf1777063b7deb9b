import type { Product } from '../tenancy/product.ts';
import { LOCK_KINDS } from './rows/locks.ts';

/** Describes functions to the rest of Sluice. */
export const FUNCTIONS: Product = {
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
  maintenance: [],
};
