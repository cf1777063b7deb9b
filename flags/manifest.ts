import type { Product } from '../tenancy/product.ts';
import { deleteHashKeys, moveHashKeys } from './rows/hash-keys.ts';
import { LOCK_KINDS } from './rows/locks.ts';

/** Describes feature flags to the rest of Sluice. */
export const FLAGS: Product<unknown> = {
  name: 'flags',
  docs: 'docs/flags.md',
  tables: [
    { name: 'feature_flag_overrides', kind: 'configuration' },
    { name: 'feature_flag_revisions', kind: 'configuration' },
    { name: 'feature_flags', kind: 'configuration' },
    { name: 'feature_flag_hash_keys', kind: 'data' },
    { name: 'feature_flag_early_hash_keys', kind: 'data' },
  ],
  sealed: [{ table: 'feature_flags', column: 'sealed_payloads' }],
  scopes: ['feature_flag'],
  lockKinds: LOCK_KINDS,
  maintenance: [],
  personsMerged: moveHashKeys,
  personsDeleted: deleteHashKeys,
};
