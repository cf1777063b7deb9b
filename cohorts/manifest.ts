import type { Product } from '../tenancy/product.ts';
import { LOCK_KINDS } from './rows/locks.ts';
import { forgetPersons, moveMembers } from './rows/members.ts';

/** Describes cohorts to the rest of Sluice. */
export const COHORTS: Product<unknown> = {
  name: 'cohorts',
  docs: 'docs/cohorts.md',
  tables: [
    { name: 'cohort_revisions', kind: 'configuration' },
    { name: 'cohorts', kind: 'configuration' },
    { name: 'cohort_people', kind: 'data' },
  ],
  sealed: [],
  scopes: ['cohort'],
  lockKinds: LOCK_KINDS,
  maintenance: [],
  personsMerged: moveMembers,
  personsDeleted: forgetPersons,
};
