import type { Pool } from '../db/pool.ts';
import type { VersionBounds } from '../db/versions.ts';
import type { Product } from '../tenancy/product.ts';
import { keepVersions } from '../tenancy/versions.ts';
import { expirePlans, FLAG_VERSIONS, forgetFlags } from './rows/forgetting.ts';
import { deleteHashKeys, expireEarlyHashKeys, moveHashKeys } from './rows/hash-keys.ts';
import { LOCK_KINDS } from './rows/locks.ts';
import { expireQuotas } from './rows/quotas.ts';
import { mendPlans, type PlanRunDependencies } from './runs/plans.ts';

/** So long it is remembered by which id a visitor is counted whose person is not stored. */
const EARLY_DAYS = 30;
const AT_ONCE = 5_000;
/** So long it is remembered what organizations used of their quotas. */
const QUOTA_MONTHS = 24;
/** So many plans that are over are remembered of each project. */
const PLANS = 1_000;
const PLAN_BYTES = 16 * 1024 * 1024;

/** Describes feature flags to the rest of Sluice. */
export const FLAGS: Product<{ pool: Pool; flags: PlanRunDependencies; versions: VersionBounds }> = {
  name: 'flags',
  docs: 'docs/flags.md',
  tables: [
    { name: 'early_access_features', kind: 'configuration' },
    { name: 'feature_flag_rollouts', kind: 'configuration' },
    { name: 'feature_flag_scheduled_changes', kind: 'configuration' },
    { name: 'feature_flag_overrides', kind: 'configuration' },
    { name: 'feature_flag_revisions', kind: 'configuration' },
    { name: 'feature_flags', kind: 'configuration' },
    { name: 'feature_flag_hash_keys', kind: 'data' },
    { name: 'feature_flag_early_hash_keys', kind: 'data' },
    { name: 'flag_usage', kind: 'data' },
  ],
  sealed: [{ table: 'feature_flags', column: 'sealed_payloads' }],
  scopes: ['feature_flag', 'early_access_feature'],
  lockKinds: LOCK_KINDS,
  maintenance: [
    {
      name: 'expireFlagHashKeys',
      summary: 'ids of visitors whose persons never came, forgotten',
      async run({ pool }, { signal }) {
        let forgotten = 0;
        for (let some = AT_ONCE; some === AT_ONCE && !signal.aborted; forgotten += some) {
          some = await expireEarlyHashKeys(pool, EARLY_DAYS, AT_ONCE);
        }
        return forgotten;
      },
    },
    {
      name: 'mendFlagPlans',
      summary: 'plans for flags stirred',
      run: ({ flags }, work) => mendPlans(flags, work),
    },
    {
      name: 'expireFlagQuotas',
      summary: 'quotas of flags of months that are over, forgotten',
      run: ({ pool }) => expireQuotas(pool, QUOTA_MONTHS, AT_ONCE),
    },
    {
      name: 'keepFlagVersions',
      summary: 'old versions of flags deleted',
      run: ({ pool, versions }, work) =>
        keepVersions(pool, { ...FLAG_VERSIONS, forget: forgetFlags }, versions, work),
    },
    {
      name: 'expireFlagPlans',
      summary: 'plans for flags that are over, forgotten',
      run: ({ pool, versions: { days } }) =>
        expirePlans(pool, { kept: PLANS, bytes: PLAN_BYTES, days, limit: AT_ONCE, now: new Date() }),
    },
  ],
  personsMerged: moveHashKeys,
  personsDeleted: deleteHashKeys,
};
