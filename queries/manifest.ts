import type { Pool } from '../db/pool.ts';
import type { Product } from '../tenancy/product.ts';
import { compareZones } from './reads/zones.ts';
import { expireBackground } from './rows/background.ts';
import { LOCK_KINDS } from './rows/locks.ts';

const AT_ONCE = 100;

/** Describes queries to the rest of Sluice. */
export const QUERIES: Product<{ pool: Pool }> = {
  name: 'queries',
  docs: 'docs/queries.md',
  tables: [
    { name: 'background_query_parts', kind: 'data' },
    { name: 'background_queries', kind: 'data' },
  ],
  sealed: [],
  scopes: [],
  lockKinds: LOCK_KINDS,
  maintenance: [
    {
      name: 'expireBackgroundQueries',
      summary: 'queries in the background expired',
      async run({ pool }, { signal, beat }) {
        let expired = 0;
        for (let some = AT_ONCE; some === AT_ONCE && !signal.aborted; expired += some) {
          beat();
          some = await expireBackground(pool, AT_ONCE);
        }
        return expired;
      },
    },
  ],
  diagnose: async (queryable) => [await compareZones(queryable)],
};
