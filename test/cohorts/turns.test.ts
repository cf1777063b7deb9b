// Counting takes turns: one project with many persons and cohorts holds up nobody.
import { beforeAll, expect, test } from '@jest/globals';
import { noteMembersChanged } from '../../cohorts/rows/counting.ts';
import { type CountPace, countCohorts } from '../../cohorts/runs/count-members.ts';
import { storeCohort } from '../flags/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let greedy: Tenant;
let small: Tenant;
const PERSONS = 6_000;
const plan = (value: string) => ({
  type: 'AND',
  values: [{ key: 'plan', type: 'person', operator: 'exact', value }],
});

const putPersons = (tenant: Tenant, from: number, to: number, changedAt = "now() - interval '1 day'") =>
  api.pool.query(
    `insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
     select $1, ('00000000-0000-4000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, now(), true,
       jsonb_build_object('plan', case when n % 3 = 0 then 'paid' else 'free' end), 1, ${changedAt}
     from generate_series($2::int, $3::int) as n`,
    [tenant.projectId, from, to],
  );

beforeAll(async () => {
  greedy = await api.createTenant('Greedy');
  small = await api.createTenant('Small');
  await putPersons(greedy, 1, PERSONS);
  await putPersons(small, 1, 30);
  for (let number = 0; number < 40; number += 1) {
    const name = `greedy ${number}`;
    await storeCohort(api.pool, greedy.projectId, { name, properties: plan(number % 2 ? 'paid' : 'free') });
  }
});

/** A count in which each look at the clock shows one more second, and who was read in it. */
async function count(
  pace: Partial<CountPace>,
): Promise<{ counted: number; read: [number, string | null][] }> {
  let seconds = 0;
  const read: [number, string | null][] = [];
  const clock = () => {
    seconds += 1;
    return seconds * 1_000;
  };
  const counted = await countCohorts(
    api.pool,
    {
      signal: new AbortController().signal,
      beat(details) {
        const { project_id, after } = details as { project_id: number; after: string | null };
        read.push([project_id, after]);
      },
    },
    { clock, ...pace },
  );
  return { counted, read };
}
const counts = async ({ projectId }: Tenant) =>
  (await api.pool.query('select count from cohorts where project_id = $1 order by id', [projectId])).rows.map(
    (row) => row.count,
  );
/** As if the last count were 16 minutes ago. */
async function later({ projectId }: Tenant): Promise<void> {
  await api.pool.query(
    `update cohorts set counted_at = now() - interval '16 minutes', updated_at = now() - interval '1 hour'
     where project_id = $1`,
    [projectId],
  );
  await api.pool.query('update cohort_counts set members_changed_at = null where project_id = $1', [
    projectId,
  ]);
}
/** A turn of one page. */
const BRIEF = { turn: 1_000 };

test('the new cohort of a small project is counted while the large one is not done', async () => {
  // The large project has begun already, and needs more than this pass.
  const first = await count({ ...BRIEF, pass: 1_000 });
  expect([first.counted, first.read]).toEqual([0, [[greedy.projectId, null]]]);
  await storeCohort(api.pool, small.projectId, { name: 'small', properties: plan('paid') });
  const second = await count({ ...BRIEF, pass: 10_000 });
  expect(second.counted).toBe(1);
  expect(second.read[0]).toEqual([small.projectId, null]);
  expect(await counts(small)).toEqual([10]);
  expect(new Set(await counts(greedy))).toEqual(new Set([null]));
});

test('a count goes on where it ended, and decides by one state of the cohorts', async () => {
  const { rows } = await api.pool.query(
    'select after_person, started_at from cohort_counts where project_id = $1',
    [greedy.projectId],
  );
  expect(rows[0].after_person).not.toBeNull();
  // What is changed now counts for the next count.
  const [changed] = (
    await api.pool.query('select id from cohorts where project_id = $1 order by id limit 1', [
      greedy.projectId,
    ])
  ).rows;
  await api.request(greedy, 'PATCH', `/api/projects/${greedy.projectId}/cohorts/${changed.id}/`, {
    filters: { properties: plan('nobody has it') },
  });
  const added = await storeCohort(api.pool, greedy.projectId, { name: 'added', properties: plan('paid') });
  const read: (string | null)[] = [];
  let counted = 0;
  for (let passes = 0; counted === 0 && passes < 20; passes += 1) {
    const pass = await count({ ...BRIEF, pass: 1_000 });
    read.push(...pass.read.map(([, after]) => after));
    counted += pass.counted;
  }
  expect(counted).toBe(40);
  expect(read[0]).toBe(rows[0].after_person);
  expect(read).toEqual([...new Set(read)].sort());
  const after = await counts(greedy);
  expect(after.slice(0, 2)).toEqual([(PERSONS * 2) / 3, PERSONS / 3]);
  expect(after.at(-1)).toBeNull();
  expect(await membersOf(added)).toBe(0);
  // The next one has both.
  expect((await count({ turn: 600_000, pass: 600_000 })).counted).toBe(41);
  const done = await counts(greedy);
  expect([done[0], done.at(-1), await membersOf(added)]).toEqual([0, PERSONS / 3, PERSONS / 3]);
});

const membersOf = async (cohortId: number) =>
  (await api.pool.query('select count(*)::int as count from cohort_people where cohort_id = $1', [cohortId]))
    .rows[0].count;

test('projects get their turns one after the other, also when a pass has time for one only', async () => {
  for (const tenant of [greedy, small]) {
    await later(tenant);
    await noteMembersChanged(api.pool, tenant.projectId);
  }
  const worked: number[] = [];
  for (let passes = 0; passes < 2; passes += 1) {
    worked.push(...(await count({ ...BRIEF, pass: 1_000 })).read.map(([projectId]) => projectId));
  }
  expect(worked.sort()).toEqual([greedy.projectId, small.projectId].sort());
});

test('who cannot have changed is not read again', async () => {
  await count({ turn: 600_000, pass: 600_000 });
  for (const tenant of [greedy, small]) await later(tenant);
  expect((await count({})).read).toEqual([]);
  const reads = async () => new Set((await count({ turn: 600_000, pass: 600_000 })).read.map(([id]) => id));
  // A person changed.
  await putPersons(small, 31, 33, 'now()');
  expect(await reads()).toEqual(new Set([small.projectId]));
  expect(await counts(small)).toEqual([11]);
  await api.pool.query(`update persons set changed_at = now() - interval '1 day'`);
  await later(small);
  expect(await reads()).toEqual(new Set());
  // A static cohort got a member.
  const listed = await storeCohort(api.pool, small.projectId, { name: 'listed', isStatic: true });
  const person = { person_ids: ['00000000-0000-4000-8000-000000000001'] };
  const url = `/api/projects/${small.projectId}/cohorts/${listed}/add_persons_to_static_cohort/`;
  expect((await api.request(small, 'PATCH', url, person)).statusCode).toBe(200);
  expect(await reads()).toEqual(new Set([small.projectId]));
  // Time passes.
  await storeCohort(api.pool, small.projectId, {
    name: 'recent',
    properties: {
      type: 'AND',
      values: [{ key: 'seen', type: 'person', operator: 'is_date_after', value: '-7d' }],
    },
  });
  await reads();
  await later(small);
  expect(await reads()).toEqual(new Set([small.projectId]));
});

test('a project that cannot be counted holds up nobody, and is told', async () => {
  await api.pool.query(
    `insert into cohort_revisions (project_id, cohort_id, version, changed_at, document)
     select project_id, id, 99, now() - interval '1 hour', '{"is_static": "maybe", "deleted": false, "filters": {}}'
     from cohorts where project_id = $1 limit 1`,
    [greedy.projectId],
  );
  await later(greedy);
  await noteMembersChanged(api.pool, greedy.projectId);
  const another = await storeCohort(api.pool, small.projectId, { name: 'another', properties: plan('free') });
  await expect(count({})).rejects.toThrow(/boolean/);
  expect(await membersOf(another)).toBeGreaterThan(0);
});
