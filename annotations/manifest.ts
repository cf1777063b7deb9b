import type { Product } from '../tenancy/product.ts';

/** Describes annotations to the rest of Sluice. */
export const ANNOTATIONS: Product<unknown> = {
  name: 'annotations',
  docs: 'docs/annotations.md',
  tables: [{ name: 'annotations', kind: 'configuration' }],
  sealed: [],
  scopes: ['annotation'],
  maintenance: [],
};
