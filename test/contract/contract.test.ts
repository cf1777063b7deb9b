// What clients, operators and other versions depend on, in one place. A change of it shows up here as a difference to
// look at: `npm test -- test/contract -u` accepts it.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Client } from '@temporalio/client';
import type { Pool } from '../../db/pool.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { documentOf, operations } from '../support/routes.ts';
import { connectTo } from '../support/temporal.ts';
import { insertFile } from './export-row.ts';
import { activityNames, lockNumbers, workerRegistry, workflowNames } from './parts.ts';

const api = apiForFile();
let anna: Tenant;
let client: Client;
afterAll(() => client?.connection.close());
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  const { TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace } = api.config;
  client = await connectTo({ address: address as string, namespace });
});

const PROSE = new Set(['description', 'summary', 'title', 'example', 'examples']);

/** A part of the document without its prose, its keys in order. */
function bare(value: unknown, inProperties = false): unknown {
  if (Array.isArray(value)) return value.map((one) => bare(one));
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value)
    .filter(([key]) => inProperties || !PROSE.has(key))
    .map(([key, one]) => [key, bare(one, key === 'properties' && !inProperties)] as const);
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Short enough to read, and different for a different text. */
const digest = (value: unknown) =>
  createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 12);

test('the operations of the API, with what they accept and answer', () => {
  const document = documentOf(api.app);
  const lines = operations(api.app).map(({ method, path, scope, statuses }) => {
    const described = document.paths[path]?.[method.toLowerCase()];
    return `${method} ${path} ${scope ?? 'public'} ${statuses.join(',')} ${digest(bare(described))}`;
  });
  expect(lines.sort().join('\n')).toMatchSnapshot();
});

test('the schemas of the API', () => {
  const { schemas } = documentOf(api.app).components;
  const lines = Object.entries(schemas).map(([name, schema]) => {
    const { properties = {} } = schema as { properties?: object };
    return `${name} ${Object.keys(properties).sort().join(',')} ${digest(bare(schema))}`;
  });
  expect(lines.sort().join('\n')).toMatchSnapshot();
});

interface NamedMetric {
  name: string;
  type: unknown;
  labelNames?: string[];
}
const metricLines = (metrics: unknown[]) =>
  (metrics as NamedMetric[])
    .filter(({ name }) => name.startsWith('sluice_'))
    .map(({ name, labelNames = [] }) => `${name} ${[...labelNames].sort().join(',')}`.trim())
    .sort()
    .join('\n');

test('the metrics of the API and of the worker, with their labels', () => {
  expect(metricLines(api.registry.getMetricsAsArray())).toMatchSnapshot();
  expect(metricLines(workerRegistry(api.pool).getMetricsAsArray())).toMatchSnapshot();
});

test('the names of workflows and activities', () => {
  expect({ workflows: workflowNames().sort(), activities: activityNames().sort() }).toMatchSnapshot();
});

test('the numbers of advisory locks', () => {
  expect(lockNumbers()).toMatchSnapshot();
});

const ID = '01912345-6789-7abc-8def-0123456789ab';
const RUN = '01912345-6789-7abc-8def-0123456789ac';

/** The name of a workflow, its input, and what it can be found by. */
async function started(workflowId: string) {
  const handle = client.workflow.getHandle(workflowId);
  const { type, memo, typedSearchAttributes, taskQueue } = await handle.describe();
  const { events } = await handle.fetchHistory();
  const input = events?.[0]?.workflowExecutionStartedEventAttributes?.input?.payloads?.map((one) =>
    JSON.parse(Buffer.from(one.data as Uint8Array).toString()),
  );
  await handle.terminate('seen');
  const attributes = typedSearchAttributes
    .getAll()
    .map(({ key, value }) => `${key.name}=${value instanceof Date ? value.toISOString() : String(value)}`)
    .sort();
  return { workflowId, type, memo, attributes, taskQueue, input };
}

test('what is started at Temporal, under which ids and with which inputs', async () => {
  const row = await insertFile(api.pool, anna.projectId, ID);
  const { exports } = api.schedules;
  await api.schedules.ensure();
  expect(await exports.sync(row)).toBe(true);
  const schedule = await client.schedule.getHandle(ID).describe();
  const { workflowId, ...run } = await started(
    (
      await exports.startRun(
        row,
        { start: '2026-01-31T12:00:00.000Z', end: '2026-01-31T13:00:00.000Z' },
        'hand',
      )
    ).workflowId,
  );
  const range = { start: '2026-01-31T12:00:00.000Z', end: '2026-01-31T14:00:00.000Z' };
  const backfill = { id: RUN, workflow_id: `${ID}-Backfill-${range.start}-${range.end}` };
  await exports.startBackfill(row, backfill);
  const notice = { event: 'batch_export.missing' as const, projectId: row.project_id, exportId: ID };
  await exports.startNotice({ ...notice, at: range.end }, 'about');
  await exports.verify(row, range, { waitMilliseconds: 1_000 });
  const found = {
    schedule: {
      spec: schedule.spec,
      action: {
        workflowType: schedule.action.workflowType,
        workflowId: schedule.action.workflowId,
        taskQueue: schedule.action.taskQueue,
        args: schedule.action.args,
        staticSummary: schedule.action.staticSummary,
      },
      policies: schedule.policies,
      note: schedule.state.note,
    },
    run: { ...run, workflowId: workflowId.replace(/-run-.*/, '-run-…') },
    backfill: await started(backfill.workflow_id),
    notice: await started(`${ID}-batch_export.missing-about`),
    verify: await started(`${ID}-verify-${range.start}-${range.end}`),
  };
  expect(JSON.stringify(found, null, 1)).toMatchSnapshot();
});

interface Entry {
  scope: string;
  activity: string;
  detail: Record<string, unknown>;
  user: boolean;
  key: boolean;
  organization: boolean;
  project: boolean;
}

async function entries(pool: Pool): Promise<Entry[]> {
  const { rows } = await pool.query(
    `select scope, activity, detail, user_id is not null as "user", personal_api_key_id is not null as key,
       organization_id is not null as organization, project_id is not null as project
     from activity_log order by at, id`,
  );
  return rows;
}

test('the entries of the activity log', async () => {
  const olga = await api.createTenant('Olga');
  const ask = async (method: string, url: string, body?: unknown) => {
    const answer = await api.request(olga, method, url, body);
    expect([url, answer.statusCode < 300]).toEqual([url, true]);
    return answer.statusCode === 204 ? {} : answer.json();
  };
  await api.pool.query('truncate activity_log');
  const made = await ask('POST', '/api/projects/@current/batch_exports/', {
    name: 'hourly',
    interval: 'hour',
    destination: { type: 'File', config: { directory: 'contract' } },
  });
  const path = `/api/projects/@current/batch_exports/${made.id}/`;
  await ask('PATCH', path, { name: 'renamed' });
  await ask('POST', `${path}pause/`);
  // Without `backfill`: within a minute of the full hour, the pause has missed something.
  await ask('POST', `${path}unpause/`);
  const range = { start_at: '2026-01-31T12:00:00Z', end_at: '2026-01-31T14:00:00Z' };
  const backfill = await ask('POST', `${path}backfills/`, range);
  await ask('POST', `${path}backfills/${backfill.backfill_id}/cancel/`);
  await ask('POST', `${path}run/`, { start_at: '2026-01-31T12:00:00Z' });
  await ask('DELETE', path);
  const project = await ask('POST', '/api/projects/', { name: 'second' });
  await ask('PATCH', `/api/projects/${project.id}/`, { name: 'renamed' });
  await ask('DELETE', `/api/projects/${project.id}/`);
  await ask('PATCH', `/api/organizations/@current/`, { name: 'renamed' });
  const key = await ask('POST', '/api/personal_api_keys/', { label: 'second', scopes: ['user:read'] });
  await ask('PATCH', `/api/personal_api_keys/${key.id}/`, { label: 'renamed' });
  await ask('POST', `/api/personal_api_keys/${key.id}/roll/`);
  await ask('DELETE', `/api/personal_api_keys/${key.id}/`);
  await ask('PATCH', '/api/users/@me/', { first_name: 'Helga' });
  const text = (await entries(api.pool)).map((one) => JSON.stringify(one)).join('\n');
  const nameless = text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<uuid>')
    .replaceAll(/\d{4}-\d\d-\d\dT(?!1[24]:00:00Z)[\d:.]+Z/g, '<time>');
  expect(nameless).toMatchSnapshot();
});
