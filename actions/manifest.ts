import type { Product } from '../tenancy/product.ts';
import { LOCK_KINDS } from './rows/locks.ts';

/** Describes actions to the rest of Sluice. */
export const ACTIONS: Product<unknown> = {
  name: 'actions',
  docs: 'docs/actions.md',
  tables: [{ name: 'actions', kind: 'configuration' }],
  sealed: [],
  scopes: ['action'],
  lockKinds: LOCK_KINDS,
  maintenance: [],
};
