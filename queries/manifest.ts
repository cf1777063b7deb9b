import type { Product } from '../tenancy/product.ts';

/** Describes queries to the rest of Sluice. They store nothing. */
export const QUERIES: Product<unknown> = {
  name: 'queries',
  docs: 'docs/queries.md',
  tables: [],
  sealed: [],
  scopes: [],
  maintenance: [],
};
