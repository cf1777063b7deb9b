// How much of the activity log is kept.
import { expect, test } from '@jest/globals';
import { insertActivities } from '../../db/activity-log.ts';
import { TENANCY_STEPS, type TenancyUpkeep } from '../../tenancy/maintenance.ts';
import { apiForFile, tenantsForFile } from '../support/api.ts';

const api = apiForFile();
const { anna, bert } = tenantsForFile(api, 'anna', 'bert');

const keep = (activityLog: Partial<TenancyUpkeep['activityLog']>) => {
  const step = TENANCY_STEPS.find((one) => one.name === 'keepActivityLog');
  const upkeep: TenancyUpkeep = {
    ...{ pool: api.pool, keyring: api.keyring, products: [], schedules: { stopProject: async () => 0 } },
    activityLog: { entries: 1_000, bytes: 1_000_000, days: 730, ...activityLog },
  };
  return step?.run(upkeep, { signal: new AbortController().signal, beat: () => undefined });
};
const noise = (bytes: number) =>
  Array.from({ length: bytes / 16 }, () => Math.random().toString(36).slice(2, 18).padEnd(16, 'x')).join('');
/** Adds entries to a log, one after the other. */
const add = async (
  count: number,
  of: { projectId: number } | { organizationId: string },
  detail: (number: number) => object,
) => {
  for (let number = 0; number < count; number += 1) {
    await insertActivities(api.pool, [
      {
        ...{ organization_id: 'organizationId' in of ? of.organizationId : null, actor: 'system' as const },
        ...{ project_id: 'projectId' in of ? of.projectId : null, user_id: null, personal_api_key_id: null },
        ...{ ip: null, request_id: null, scope: 'Test', item_id: String(number), activity: 'updated' },
        detail: { ...detail(number) },
      },
    ]);
  }
};
const entriesOf = async (condition: string, value: unknown) => {
  const { rows } = await api.pool.query(
    `select item_id, detail, pg_column_size(detail) as bytes from activity_log where scope = 'Test' and ${condition} order by at, id`,
    [value],
  );
  return rows;
};

test('the oldest details of a project go first, and who changed what stays', async () => {
  await add(150, { projectId: anna.projectId }, (number) => ({
    name: `thing ${number}`,
    changes: [{ after: noise(10_000) }],
  }));
  await add(5, { projectId: bert.projectId }, () => ({ name: 'other', changes: [{ after: noise(10_000) }] }));
  await keep({ bytes: 400_000 });
  const entries = await entriesOf('project_id = $1', anna.projectId);
  expect(entries).toHaveLength(150);
  const whole = entries.filter((one) => one.detail.changes !== undefined);
  expect(whole.length).toBeGreaterThan(20);
  expect(whole.reduce((sum, one) => sum + one.bytes, 0)).toBeLessThanOrEqual(400_000);
  expect(entries.slice(-whole.length)).toEqual(whole);
  expect(entries[0].detail).toEqual({ name: 'thing 0', is_shortened: true });
  const others = await entriesOf('project_id = $1', bert.projectId);
  expect(others.every((one) => one.detail.changes !== undefined)).toBe(true);
  // What has been shortened is not looked at again.
  expect(await keep({ bytes: 400_000 })).toBe(0);
  const answer = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/activity_log/?limit=200`);
  expect(answer.statusCode).toBe(200);
});

test('a log has so many entries, that of a project and that of an organization', async () => {
  const { projectId, organizationId } = await api.createTenant('Writer');
  await add(150, { projectId }, (number) => ({ number }));
  await add(150, { organizationId }, (number) => ({ number }));
  await keep({ entries: 120 });
  const items = async (condition: string, value: unknown) =>
    (await entriesOf(condition, value)).map((one) => Number(one.item_id)).sort((a, b) => a - b);
  const newest = Array.from({ length: 120 }, (_, number) => number + 30);
  expect(await items('project_id = $1', projectId)).toEqual(newest);
  const { rows } = await api.pool.query(
    'select count(*)::int as count from activity_log where organization_id = $1 and project_id is null',
    [organizationId],
  );
  expect(rows[0].count).toBe(120);
});

test('entries go when they are old', async () => {
  const tenant = await api.createTenant('Old');
  for (const days of [10, 99, 101, 400]) {
    const at = Date.now() - days * 86_400_000;
    const hex = at.toString(16).padStart(12, '0');
    await api.pool.query(
      `insert into activity_log (id, organization_id, project_id, at, scope, item_id, activity)
       values ($1, $2, $3, $4, 'Test', $5, 'updated')`,
      [
        `${hex.slice(0, 8)}-${hex.slice(8)}-7000-8000-${String(days).padStart(12, '0')}`,
        ...[tenant.organizationId, tenant.projectId, new Date(at), String(days)],
      ],
    );
  }
  await keep({ days: 100 });
  const left = await entriesOf('project_id = $1', tenant.projectId);
  expect(left.map((one) => one.item_id)).toEqual(['99', '10']);
});

test('nobody else takes something out of it', async () => {
  await add(1, { projectId: anna.projectId }, () => ({}));
  await expect(api.pool.query("delete from activity_log where scope = 'Test'")).rejects.toThrow(
    'activity_log is append-only',
  );
});
