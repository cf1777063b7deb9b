// How Postgres finds the events of persons in a cohort. (docs/cohorts.md tells what it takes.)
import { beforeAll, expect, test } from '@jest/globals';
import { databaseForFile } from '../support/database.ts';
import type { PlanNode } from '../support/plans.ts';
import { insertEvents } from '../support/rows.ts';
import { parserForFile, planOfQuery, queryOf, START } from './support.ts';

const parser = parserForFile();
const database = databaseForFile();
const MEMBERS = 20_000;
const COHORT = 5;
const HOUR = 3_600_000;
const [FEW, MANY] = [20, 5_000];

/** The first hour has few events, and the second one many. */
beforeAll(async () => {
  const { pool } = database;
  await pool.query(
    `insert into cohort_people (project_id, cohort_id, person_id)
     select 1, $1, md5(n::text)::uuid from generate_series(1, $2::int) n`,
    [COHORT, MEMBERS],
  );
  for (const [hour, count] of [FEW, MANY].entries()) {
    const timestamp = new Date(START + hour * HOUR).toISOString();
    await insertEvents(pool, Array(count).fill({ project_id: 1, timestamp }));
  }
  await pool.query('analyze cohort_people, events');
});

/** The plan for an hour, where the members are more than fit into a hash table. */
async function planFor(operator: string, hour: number): Promise<PlanNode[]> {
  const filters = [{ type: 'cohort', key: 'id', operator, value: COHORT }];
  const interval = { start: START + hour * HOUR, end: START + (hour + 1) * HOUR };
  const query = await queryOf(parser, { filters, interval });
  const settings = { ...query.settings, work_mem: '64kB', hash_mem_multiplier: '1' };
  return planOfQuery(database.pool, { ...query, settings });
}

/** How many members a plan read. */
const membersRead = (plan: readonly PlanNode[]) =>
  plan
    .filter((node) => node['Relation Name'] === 'cohort_people')
    .reduce((sum, node) => {
      const rows = (node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0);
      return sum + rows * (node['Actual Loops'] ?? 1);
    }, 0);

test.each(['in', 'not_in'])(
  'persons are looked up one by one where members are too many to hash: %s',
  async (operator) => {
    for (const [hour, events] of [FEW, MANY].entries()) {
      const plan = await planFor(operator, hour);
      expect(membersRead(plan)).toBeLessThanOrEqual(events);
      // A join would give the events in another order than they were stored in.
      expect(plan.filter((node) => /Join|Nested Loop/.test(node['Node Type']))).toEqual([]);
    }
  },
);
