import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Tenant } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { insertEvents } from '../../support/rows.ts';
import { apiAndWorkerForFile } from '../../support/worker.ts';

const root = mkdtempSync(path.join(tmpdir(), 'sluice-folders-'));
const settings = { SLUICE_EXPORT_ROOT: root, SLUICE_SHUTDOWN_SECONDS: '1', SLUICE_EXPORT_PAUSE_AFTER: '3' };
const { api } = apiAndWorkerForFile(settings);
afterAll(() => rmSync(root, { recursive: true, force: true }));

const HOUR = 3_600_000;
const FIRST = Math.floor(Date.now() / HOUR) * HOUR - 30 * HOUR;
const hour = (n: number) => new Date(FIRST + n * HOUR).toISOString();

async function ask(of: Tenant, method: string, url: string, body?: object) {
  const answer = await api.request(of, method, url, body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
}
/** Verifies, and asks again while the verification takes longer than a request waits. */
const verify = (of: Tenant, url: string, start: string) =>
  eventually(async () => {
    const { status, body } = await ask(of, 'POST', `${url}verify/`, { start_at: start });
    return status !== 202 && body;
  });
const exportsOf = (projectId: number) => `/api/projects/${projectId}/batch_exports/`;

/** An organization whose project has some events in the first hours. */
async function tenant(name: string): Promise<Tenant> {
  const made = await api.createTenant(name);
  const events = Array.from({ length: 6 }, (_, index) => ({
    ...{
      project_id: made.projectId,
      event: name,
      timestamp: new Date(FIRST + index * HOUR + 1).toISOString(),
    },
  }));
  await insertEvents(api.pool, events);
  return made;
}

async function create(of: Tenant, directory: string, more: object = {}, projectId = of.projectId) {
  const destination = { type: 'File', config: { directory, ...more } };
  const made = await ask(of, 'POST', exportsOf(projectId), { name: 'Lake', interval: 'hour', destination });
  expect(made.status).toBe(201);
  return made.body as { id: string };
}

/** Runs the n-th hour, and answers the run when it has ended. */
async function run(of: Tenant, id: string, n: number, projectId = of.projectId) {
  const url = `${exportsOf(projectId)}${id}/`;
  const started = await ask(of, 'POST', `${url}run/`, { start_at: hour(n) });
  expect(started.status).toBe(201);
  return eventually(async () => {
    const { body } = await ask(of, 'GET', `${url}runs/`);
    const found = body.results.find(
      (one: { workflow_id: string }) => one.workflow_id === started.body.workflow_id,
    );
    return ['Completed', 'Failed'].includes(found?.status) ? found : undefined;
  });
}

/** As exports were before there were folders. */
const makeOld = (id: string) =>
  api.pool.query('update batch_exports set folder = null, write_store = $2 where id = $1', [id, 'file']);

const namesIn = (...below: string[]) => {
  const all = readdirSync(path.join(root, ...below), { recursive: true, withFileTypes: true });
  return all.map((one) => path.relative(root, path.join(one.parentPath, one.name))).sort();
};
const inProject = (of: Tenant, ...rest: string[]) => path.join('@projects', String(of.projectId), ...rest);

let anna: Tenant;
let boris: Tenant;
beforeAll(async () => {
  await api.schedules.ensure();
  anna = await tenant('Anna');
  boris = await tenant('Boris');
});

test('two tenants write to the same directory, each in the folder of its project', async () => {
  for (const one of [anna, boris]) {
    const { id } = await create(one, 'same', { prefix: 'a/' });
    expect(await run(one, id, 0)).toMatchObject({ status: 'Completed', records_completed: 1 });
    const report = await verify(one, `${exportsOf(one.projectId)}${id}/`, hour(0));
    expect(report.verdict).toBe('same');
  }
  for (const one of [anna, boris]) {
    const [data] = namesIn(inProject(one, 'same', 'a')).filter((name) => name.endsWith('.jsonl'));
    const event = JSON.parse(readFileSync(path.join(root, data as string), 'utf8'));
    expect(event.event).toBe(one === anna ? 'Anna' : 'Boris');
  }
});

test('a test of a destination leaves nothing, and answers the same whatever others have', async () => {
  await run(boris, (await create(boris, 'secret/deep')).id, 0);
  writeFileSync(path.join(root, inProject(boris), 'taken'), '');
  const before = namesIn();
  const results = [];
  for (const directory of ['secret', 'secret/deep', 'taken', 'nothing', 'x/y/z']) {
    const destination = { type: 'File', config: { directory } };
    const { body } = await ask(anna, 'POST', `${exportsOf(anna.projectId)}run_test_step_new/`, {
      ...{ name: 'x', interval: 'hour', destination, step: 0 },
    });
    results.push(body.result);
  }
  expect(results.map((one) => one.status)).toEqual(results.map(() => 'Passed'));
  expect(new Set(results.map((one) => one.message)).size).toBe(1);
  expect(namesIn()).toEqual(before);
  const own = { type: 'File', config: { directory: 'taken/x' } };
  const refused = await ask(boris, 'POST', `${exportsOf(boris.projectId)}run_test_step_new/`, {
    ...{ name: 'x', interval: 'hour', destination: own, step: 0 },
  });
  expect(refused.body.result).toMatchObject({
    status: 'Failed',
    message: expect.stringContaining('there is a file where a directory has to be'),
  });
});

test('an export from before folders stays where it is, until its files go elsewhere', async () => {
  const { id } = await create(anna, 'old');
  await makeOld(id);
  expect(await run(anna, id, 0)).toMatchObject({ status: 'Completed' });
  expect(namesIn('old')).toHaveLength(2);
  const url = `${exportsOf(anna.projectId)}${id}/`;
  await ask(anna, 'PATCH', url, { name: 'Old', destination: { config: { compression: 'gzip' } } });
  expect((await verify(anna, url, hour(0))).verdict).toBe('same');
  // Not into the directory of somebody else.
  mkdirSync(path.join(root, 'theirs'));
  const destination = { config: { directory: 'theirs' } };
  await ask(anna, 'POST', `${url}run_test_step/`, { step: 0, destination });
  expect((await ask(anna, 'PATCH', url, { destination })).status).toBe(200);
  expect(await run(anna, id, 1)).toMatchObject({ status: 'Completed' });
  expect(namesIn('theirs')).toEqual([]);
  expect(namesIn(inProject(anna, 'theirs'))).toHaveLength(2);
});

test('an export from before folders cannot enter them, by no name and no link', async () => {
  const theirs = inProject(boris);
  const before = namesIn(theirs);
  symlinkSync('@projects', path.join(root, 'link'));
  for (const [directory, prefix] of [
    ['.', `${theirs}/`],
    ['.', '@PROJECTS/x/'],
    ['link', `${boris.projectId}/`],
    [`link/${boris.projectId}`, ''],
  ] as const) {
    const { id } = await create(anna, directory, { prefix });
    await makeOld(id);
    const failed = await run(anna, id, 0);
    expect(failed).toMatchObject({ status: 'Failed', latest_error: expect.stringContaining('reserved') });
    const { body } = await ask(anna, 'POST', `${exportsOf(anna.projectId)}${id}/run_test_step/`, { step: 0 });
    if (prefix === '') expect(body.result.status).toBe('Failed');
  }
  expect(namesIn(theirs)).toEqual(before);
  const destination = { type: 'File', config: { directory: `./${theirs}` } };
  const refused = await ask(anna, 'POST', exportsOf(anna.projectId), {
    ...{ name: 'x', interval: 'hour', destination },
  });
  expect([refused.status, refused.body.detail]).toEqual([400, expect.stringContaining('is reserved')]);
});

test('the folder of a project is no link: not into the folder of another one, and to nowhere else', async () => {
  const dora = await tenant('Dora');
  const theirs = inProject(boris);
  const before = namesIn(theirs);
  symlinkSync(path.join(root, theirs), path.join(root, inProject(dora)));
  const { id } = await create(dora, 'lake');
  expect(await run(dora, id, 0)).toMatchObject({
    status: 'Failed',
    latest_error: expect.stringContaining('there is a symbolic link'),
  });
  const { body } = await ask(dora, 'POST', `${exportsOf(dora.projectId)}${id}/run_test_step/`, { step: 0 });
  expect(body.result.status).toBe('Failed');
  expect(namesIn(theirs)).toEqual(before);
});

test('an export that is moved to another project keeps its files, and takes its folder along', async () => {
  const clara = await tenant('Clara');
  const second = (await ask(clara, 'POST', '/api/projects/', { name: 'Second' })).body.id as number;
  const { id } = await create(clara, 'lake');
  await run(clara, id, 0);
  const rollback = `/api/organizations/${clara.organizationId}/environments_rollback/`;
  expect((await ask(clara, 'POST', rollback, { [clara.projectId]: second })).status).toBe(200);
  const url = `${exportsOf(second)}${id}/`;
  expect((await verify(clara, url, hour(0))).problems).not.toContainEqual(
    expect.stringContaining('is not there'),
  );
  expect(await run(clara, id, 1, second)).toMatchObject({ status: 'Completed' });
  expect(namesIn(inProject(clara, 'lake')).filter((name) => name.endsWith('_manifest.json'))).toHaveLength(2);
  // Whoever sees both cannot let another one write over it; elsewhere is another folder.
  const again = { name: 'x', interval: 'hour', destination: { type: 'File', config: { directory: 'lake' } } };
  expect((await ask(clara, 'POST', exportsOf(clara.projectId), again)).status).toBe(400);
  const other = await create(clara, 'lake', {}, second);
  expect(await run(clara, other.id, 1, second)).toMatchObject({ status: 'Completed' });
  // Its directory and the manifest of an empty interval.
  expect(namesIn('@projects', String(second))).toHaveLength(2);
});

test('runs that find something else in the place of their manifests fail, and say what is there', async () => {
  const { id } = await create(boris, 'junk');
  const url = `${exportsOf(boris.projectId)}${id}/`;
  for (const n of [0, 1, 2]) {
    const { body } = await ask(boris, 'POST', `${url}preview/`, { start_at: hour(n) });
    const folder = path.join(root, inProject(boris, 'junk'));
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, body.manifest_key), n === 0 ? '' : '{"version": 1, "export_id": "x"}');
    const failed = await run(boris, id, n);
    expect(failed).toMatchObject({ status: 'Failed' });
    expect(failed.latest_error).toMatch(n === 0 ? /is no manifest of Sluice/ : /belongs to another export/);
  }
});
