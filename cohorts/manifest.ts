import type { Pool } from '../db/pool.ts';
import type { Product } from '../tenancy/product.ts';
import { LOCK_KINDS } from './rows/locks.ts';
import { forgetPersons, moveMembers } from './rows/members.ts';
import { countCohorts } from './runs/count-members.ts';

/** Describes cohorts to the rest of Sluice. */
export const COHORTS: Product<{ pool: Pool }> = {
  name: 'cohorts',
  docs: 'docs/cohorts.md',
  tables: [
    { name: 'cohort_revisions', kind: 'configuration' },
    { name: 'cohorts', kind: 'configuration' },
    { name: 'cohort_people', kind: 'data' },
    { name: 'cohort_counts', kind: 'data' },
  ],
  sealed: [],
  scopes: ['cohort'],
  lockKinds: LOCK_KINDS,
  maintenance: [
    {
      name: 'countCohorts',
      summary: 'cohorts counted',
      run: ({ pool }, work) => countCohorts(pool, work),
    },
  ],
  personsMerged: moveMembers,
  personsDeleted: forgetPersons,
};
