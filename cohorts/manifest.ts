import type { Pool } from '../db/pool.ts';
import type { VersionBounds } from '../db/versions.ts';
import type { Product } from '../tenancy/product.ts';
import { keepVersions } from '../tenancy/versions.ts';
import { COHORT_VERSIONS, forgetCohorts } from './rows/forgetting.ts';
import { LOCK_KINDS } from './rows/locks.ts';
import { forgetPersons, moveMembers } from './rows/members.ts';
import { countCohorts } from './runs/count-members.ts';

/** Describes cohorts to the rest of Sluice. */
export const COHORTS: Product<{ pool: Pool; versions: VersionBounds }> = {
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
    {
      name: 'keepCohortVersions',
      summary: 'old versions of cohorts deleted',
      run: ({ pool, versions }, work) =>
        keepVersions(pool, { ...COHORT_VERSIONS, forget: forgetCohorts }, versions, work),
    },
  ],
  personsMerged: moveMembers,
  personsDeleted: forgetPersons,
};
