import { beforeAll, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { type Program, programsForFile } from '../support/programs.ts';

const programs = programsForFile();
const api = apiForFile();
let anna: Tenant;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
});

const startWorker = (): Program =>
  programs.start('worker/main.ts', {
    DATABASE_URL: api.config.DATABASE_URL as string,
    TEMPORAL_ADDRESS: api.config.TEMPORAL_ADDRESS as string,
    TEMPORAL_NAMESPACE: api.config.TEMPORAL_NAMESPACE,
    SLUICE_LOG_LEVEL: 'info',
    SLUICE_ENCRYPTION_KEYS: api.config.SLUICE_ENCRYPTION_KEYS as string,
  });
const ask = async (method: 'GET' | 'POST', rest: string, body?: object) =>
  (await api.request(anna, method, `/api/projects/${anna.projectId}/${rest}`, body)).json();

test('workers are killed while rollouts and changes are under way: each step and each change is done once', async () => {
  let worker = startWorker();
  await eventually(async () => worker.output().includes('the worker polls'));
  const filters = { groups: [{ properties: [], rollout_percentage: 0 }] };
  const { id } = await ask('POST', 'feature_flags/', { key: 'rolled-out', filters });
  const { id: other } = await ask('POST', 'feature_flags/', { key: 'switched', filters });
  const soon = (seconds: number) => new Date(Date.now() + seconds * 1_000).toISOString();
  const rollout = await ask('POST', `feature_flags/${id}/rollouts/`, {
    ...{ to_percentage: 100, steps: 50, ends_at: soon(12) },
  });
  for (let second = 1; second <= 12; second += 1) {
    await ask('POST', 'scheduled_changes/', {
      ...{ record_id: other, model_name: 'FeatureFlag', scheduled_at: soon(second) },
      payload: { operation: 'update_status', value: second % 2 === 0 },
    });
  }
  const shown = () => ask('GET', `feature_flags/${id}/rollouts/${rollout.id}/`);
  for (const share of [5, 40]) {
    await eventually(async () => (await shown()).percentage > share);
    worker.kill('SIGKILL');
    await worker.exited;
    worker = startWorker();
  }
  await eventually(async () => (await shown()).status === 'completed');
  const changes = () => ask('GET', `scheduled_changes/?record_id=${other}`);
  await eventually(async () =>
    (await changes()).results.every((one: { executed_at: unknown }) => one.executed_at !== null),
  );
  const { rows } = await api.pool.query(
    `select flag_id, version, (document->'filters'->'groups'->0->>'rollout_percentage')::float8 as percentage
     from feature_flag_revisions order by flag_id, version`,
  );
  const steps = rows.filter((row) => row.flag_id === id).map((row) => row.percentage);
  expect([steps.at(0), steps.at(-1)]).toEqual([0, 100]);
  expect(steps).toEqual([...new Set(steps)].sort((a, b) => a - b));
  const trigger = "detail->'trigger'->>'job_id'";
  const log = await api.pool.query(
    `select count(*)::int as count, count(distinct ${trigger})::int as different from activity_log
     where item_id = $1 and detail::jsonb ? 'trigger'`,
    [String(other)],
  );
  expect(log.rows).toEqual([{ count: 12, different: 12 }]);
});
