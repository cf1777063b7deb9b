import type { Product } from '../tenancy/product.ts';

/** Describes integrations to the rest of Sluice. */
export const INTEGRATIONS: Product<unknown> = {
  name: 'integrations',
  docs: 'docs/integrations.md',
  tables: [{ name: 'integrations', kind: 'configuration' }],
  sealed: [{ table: 'integrations', column: 'secrets' }],
  scopes: ['integration'],
  maintenance: [],
};
