import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { visit } from './chromium.ts';
import { CLIENTS, findChromium, findPythonClient, runProgram } from './client-programs.ts';
import { storedEvents, storedPeople, WireLog } from './client-wire.ts';

const api = apiForFile();
let host: string;
let wire: WireLog;

beforeAll(async () => {
  await api.app.listen({ host: '127.0.0.1', port: 0 });
  host = `http://127.0.0.1:${(api.app.server.address() as AddressInfo).port}`;
  wire = new WireLog(api.app);
});

/** What depends on the machine that the client runs on. */
const OF_THE_MACHINE = /^\$(?:python_runtime|python_version|os|os_version|os_distro)$/;

function golden<T>(client: string): T {
  return JSON.parse(readFileSync(path.join(import.meta.dirname, 'golden/clients', `${client}.json`), 'utf8'));
}

/** `encoding` is what the client sends besides what the golden case says: the same with each compression. */
async function expectGolden(client: string, tenant: Tenant, encoding = ''): Promise<void> {
  const requests = wire.take();
  const events = await storedEvents(api.pool, tenant.projectId, OF_THE_MACHINE);
  const { persons, groups } = await storedPeople(api.pool, tenant.projectId);
  const expected = golden<{ requests: string[] }>(client);
  const sent = expected.requests.map((line) => line + encoding);
  expect({ requests, events, persons, groups }).toEqual({ ...expected, requests: sent });
}

describe.each(['3.6.3', '4.18.0', '5.70.0'])('posthog-node %s', (version) => {
  const name = `posthog-node-${version[0]}`;
  test('captures, identifies, aliases, groups and imports', async () => {
    const tenant = await api.createTenant(name);
    wire.take();
    const result = await runProgram(process.execPath, ['node.mjs', name, host, tenant.projectToken]);
    expect(result).toEqual({ code: 0, output: '' });
    await expectGolden(name, tenant);
  });

  test('gives a person one further id after the other', async () => {
    const tenant = await api.createTenant(`alias ${name}`);
    const result = await runProgram(process.execPath, ['alias.mjs', name, host, tenant.projectToken]);
    expect(result).toEqual({ code: 0, output: '' });
    const { persons } = await storedPeople(api.pool, tenant.projectId);
    const properties = { 'from ann': true, 'from phone': true, 'from tablet': true };
    expect(persons).toEqual([{ ids: ['ann', 'phone', 'tablet'], is_identified: true, properties }]);
    const url = `/api/projects/${tenant.projectId}/ingestion_warnings/`;
    expect((await api.request(tenant, 'GET', url)).json().results).toEqual([]);
  });
});

test('posthog-node 5.70.0 in its v1 mode', async () => {
  const tenant = await api.createTenant('v1');
  wire.take();
  const env = { POSTHOG_CAPTURE_MODE: 'v1' };
  const result = await runProgram(
    process.execPath,
    ['node.mjs', 'posthog-node-5', host, tenant.projectToken],
    { env },
  );
  expect(result).toEqual({ code: 0, output: '' });
  await expectGolden('posthog-node-5-v1', tenant);
});

describe.each(['3.7.0', '6.7.6', '7.91.1'])('posthog-python %s', (version) => {
  const { found, reason } = findPythonClient(version);
  if (found === undefined) process.stderr.write(`skipped: posthog-python ${version}: ${reason}\n`);
  const name = `posthog-python-${version[0]}`;
  (found === undefined ? test.skip : test)('captures, sets, aliases, groups and imports', async () => {
    const tenant = await api.createTenant(name);
    wire.take();
    const env = { PYTHONPATH: found as string, PYTHONDONTWRITEBYTECODE: '1' };
    const program = path.join(CLIENTS, 'python.py');
    const result = await runProgram('python3', [program, host, tenant.projectToken], { env });
    expect(result.output).not.toMatch(/Traceback|error/i);
    expect(result.code).toBe(0);
    await expectGolden(name, tenant);
  });
});

describe('posthog-python 7.91.1 in its v1 mode', () => {
  const { found, reason } = findPythonClient('7.91.1', 'zstd');
  if (found === undefined) process.stderr.write(`skipped: posthog-python in its v1 mode: ${reason}\n`);
  (found === undefined ? test.skip : test).each(['none', 'gzip', 'deflate', 'zstd'])(
    'loses nothing when it compresses: %s',
    async (compression) => {
      const tenant = await api.createTenant(`v1 ${compression}`);
      wire.take();
      const program = path.join(CLIENTS, 'python.py');
      const env = { PYTHONPATH: found as string, PYTHONDONTWRITEBYTECODE: '1', POSTHOG_CAPTURE_MODE: 'v1' };
      const result = await runProgram('python3', [program, host, tenant.projectToken], {
        env: { ...env, POSTHOG_CAPTURE_COMPRESSION: compression },
      });
      expect(result.output).not.toMatch(/Traceback|error/i);
      expect(result.code).toBe(0);
      await expectGolden('posthog-python-7-v1', tenant, compression === 'none' ? '' : ` ${compression}`);
    },
  );
});

interface BrowserGolden {
  requests: Record<'jsdom' | 'chromium', string[]>;
  /** Less than what is stored: the rest tells of the browser. */
  events: object[];
  persons: object[];
  groups: object[];
}

async function expectBrowserEvents(
  name: string,
  version: string,
  where: 'jsdom' | 'chromium',
  tenant: Tenant,
): Promise<void> {
  const expected = golden<BrowserGolden>(name);
  expect(wire.take()).toEqual(expect.arrayContaining(expected.requests[where]));
  const events = await storedEvents(api.pool, tenant.projectId, /^never$/);
  expect(events.map((event) => event.event)).toEqual(
    expected.events.map((event) => (event as { event: string }).event),
  );
  expect(events).toMatchObject(expected.events);
  expect(events.map((event) => event.properties.$lib_version)).toEqual(events.map(() => version));
  const { persons, groups } = await storedPeople(api.pool, tenant.projectId);
  expect({ persons, groups }).toEqual({ persons: expected.persons, groups: expected.groups });
}

test('posthog-js 1.434.18 without cookies: nobody gets the events of others, and two who log in stay two', async () => {
  const tenant = await api.createTenant('cookieless');
  for (const user of ['ann', 'bob']) {
    const args = ['jsdom.mjs', 'posthog-js', host, tenant.projectToken, 'cookieless.js', user];
    expect((await runProgram(process.execPath, args)).code).toBe(0);
  }
  const events = await storedEvents(api.pool, tenant.projectId, /^never$/);
  const all = events.map(({ event, distinct_id }) => `${event} by ${distinct_id}`);
  expect(all.filter((one) => !one.includes('$pageleave')).sort()).toEqual([
    '$identify by ann',
    '$identify by bob',
    'bought by ann',
    'bought by bob',
    'looked by $posthog_cookieless',
    'looked by $posthog_cookieless',
  ]);
  const { persons } = await storedPeople(api.pool, tenant.projectId);
  expect(persons).toMatchObject([
    { ids: ['ann'], is_identified: true, properties: { name: 'ann' } },
    { ids: ['bob'], is_identified: true, properties: { name: 'bob' } },
  ]);
});

describe.each([
  ['posthog-js', '1.434.18'],
  ['posthog-js-1-200', '1.200.2'],
])('%s %s', (name, version) => {
  test('in jsdom: captures, identifies, groups, and sends the rest by beacon when the page is left', async () => {
    const tenant = await api.createTenant(name);
    wire.take();
    const result = await runProgram(process.execPath, ['jsdom.mjs', name, host, tenant.projectToken]);
    expect(result.code).toBe(0);
    await expectBrowserEvents(name, version, 'jsdom', tenant);
  });

  const { found, reason } = findChromium();
  if (found === undefined) process.stderr.write(`skipped: ${name} in Chromium: ${reason}\n`);
  (found === undefined ? test.skip : test)(
    'in Chromium: the same, from a page of another origin',
    async () => {
      const tenant = await api.createTenant(name);
      wire.take();
      const arrived = eventually(async () => {
        const { rows } = await api.pool.query('select 1 from events where project_id = $1 and event = $2', [
          tenant.projectId,
          '$pageleave',
        ]);
        return rows.length > 0;
      });
      await visit(found as string, { library: name, host, token: tenant.projectToken, arrived });
      await arrived;
      await expectBrowserEvents(name, version, 'chromium', tenant);
    },
  );
});
