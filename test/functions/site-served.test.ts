import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { siteScript } from '../../api/functions/site-script.ts';
import { MOST_SITE_BYTES } from '../../functions/rules/limits.ts';
import { browse } from '../capture/chromium.ts';
import { CLIENTS, findChromium, runProgram } from '../capture/client-programs.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = apiForFile();
let host: string;
let anna: Tenant;
beforeAll(async () => {
  host = await api.app.listen({ port: 0, host: '127.0.0.1' });
});

const base = (tenant: Tenant) => `/api/projects/${tenant.projectId}/hog_functions/`;

async function create(tenant: Tenant, body: Record<string, unknown>): Promise<string> {
  const answer = await api.request(tenant, 'POST', base(tenant), {
    type: 'site_app',
    enabled: true,
    ...body,
  });
  expect(answer.json()).toMatchObject({ id: expect.any(String) });
  return answer.json().id;
}

const change = async (tenant: Tenant, id: string, body: Record<string, unknown>) => {
  const answer = await api.request(tenant, 'PATCH', `${base(tenant)}${id}/`, body);
  expect(answer.statusCode).toBe(200);
};

const script = async (tenant: Tenant): Promise<string> =>
  (await api.app.inject({ url: `/array/${tenant.projectToken}/config.js` })).body;

interface App {
  id: string;
  type: string;
  init(config: object): { processEvent(globals: object): void };
}

/** Evaluates the script as a page does, and returns the functions of the project. */
async function apps(tenant: Tenant, page: Record<string, unknown> = {}): Promise<App[]> {
  const window: Record<string, unknown> = page;
  new Function('window', 'console', await script(tenant))(window, { error: () => undefined });
  const all = window._POSTHOG_REMOTE_CONFIG as Record<string, { siteApps: App[] }>;
  return all[tenant.projectToken]?.siteApps as App[];
}
const ids = async (tenant: Tenant) => (await apps(tenant)).map(({ id }) => id);
const becomes = (tenant: Tenant, expected: string[]) =>
  eventually(async () => JSON.stringify(await ids(tenant)) === JSON.stringify(expected));

describe('what is served', () => {
  beforeAll(async () => {
    anna = await api.createTenant('Anna');
  });

  test('the enabled functions of the project in their order, until they are disabled or deleted', async () => {
    const hog = 'export function onLoad() {}';
    const second = await create(anna, { hog, name: 'b', execution_order: 2 });
    const first = await create(anna, { hog, name: 'a', execution_order: 1, type: 'site_destination' });
    await create(anna, { hog, enabled: false });
    await create(anna, { hog: 'return event', type: 'destination' });
    await becomes(anna, [first, second]);
    expect((await apps(anna)).map(({ type }) => type)).toEqual(['site_destination', 'site_app']);
    await change(anna, first, { enabled: false });
    await becomes(anna, [second]);
    await change(anna, second, { deleted: true });
    await becomes(anna, []);
    await change(anna, second, { deleted: false });
    await becomes(anna, [second]);
    await change(anna, second, { deleted: true });
    await becomes(anna, []);
  });

  test('a change reaches the next load, also one of a process that asks another connection', async () => {
    const tenant = await api.createTenant('Changer');
    const id = await create(tenant, {
      hog: 'export function onLoad({ inputs, posthog }) { posthog.seen.push(inputs.a) }',
      inputs_schema: [{ key: 'a', type: 'string' }],
      inputs: { a: { value: 'one' } },
    });
    const seen = async () => {
      const all: unknown[] = [];
      for (const { init } of await apps(tenant)) init({ posthog: { seen: all }, callback: () => undefined });
      return all;
    };
    expect(await seen()).toEqual(['one']);
    await change(tenant, id, { inputs: { a: { value: 'two' } } });
    await eventually(async () => (await seen())[0] === 'two');
    await api.pool.query('update functions set enabled = false where id = $1', [id]);
    await becomes(tenant, []);
  });

  test('a key of one project never serves the functions of another', async () => {
    const [one, two] = [await api.createTenant('One'), await api.createTenant('Two')];
    const id = await create(one, { hog: "export const onLoad = () => 'only of one'" });
    await becomes(one, [id]);
    expect(await script(two)).not.toContain('only of one');
    expect(await ids(two)).toEqual([]);
    expect((await api.app.inject({ url: '/array/phc_nobody/config.js' })).statusCode).toBe(404);
  });

  test('a key that was replaced serves nothing more, and the new one all', async () => {
    const tenant = await api.createTenant('Replaced');
    const id = await create(tenant, { hog: 'export const onLoad = () => {}' });
    await becomes(tenant, [id]);
    const old = tenant.projectToken;
    const changed = { ...tenant, projectToken: `${old}2` };
    await api.pool.query('update projects set api_token = $2 where id = $1', [
      tenant.projectId,
      changed.projectToken,
    ]);
    await eventually(
      async () => (await api.app.inject({ url: `/array/${old}/config.js` })).statusCode === 404,
    );
    await becomes(changed, [id]);
    expect(await script(changed)).not.toContain(`"${old}"`);
    // White space around a key is no other key.
    const spaced = await api.app.inject({ url: `/array/%20${changed.projectToken}%20/config.js` });
    expect(spaced.body).toBe(await script(changed));
  });

  test('code and inputs cannot end a script element around them', async () => {
    const tenant = await api.createTenant('Breaker');
    const texts = ['</script><script>alert(1)</script>', '<!--<script>'];
    await create(tenant, {
      hog: `// ${texts.join('')}
        export function onLoad({ inputs, posthog }) {
          posthog.seen.push(inputs.a, '</script>', \`<!--\`, '\\</SCRIPT>', /<\\/script>/.test('</script>'), /[</script]{3}/.test('</s'))
        }`,
      inputs_schema: [{ key: 'a', type: 'string', templating: false }],
      inputs: { a: { value: texts.join('') } },
    });
    const served = await script(tenant);
    expect(served).not.toMatch(/<\/script|<!--/i);
    const seen: unknown[] = [];
    for (const { init } of await apps(tenant)) init({ posthog: { seen }, callback: () => undefined });
    expect(seen).toEqual([texts.join(''), '</script>', '<!--', '</SCRIPT>', true, true]);
  });

  test('etag and gzip; a HEAD request has no body', async () => {
    const tenant = await api.createTenant('Packed');
    await create(tenant, { hog: `export const onLoad = () => '${'x'.repeat(5_000)}'` });
    const url = `/array/${tenant.projectToken}/config.js`;
    const plain = await eventually(async () => {
      const answer = await api.app.inject({ url });
      return answer.body.length > 5_000 && answer;
    });
    const zipped = await api.app.inject({ url, headers: { 'accept-encoding': 'br, gzip' } });
    expect(zipped.headers).toMatchObject({
      'content-encoding': 'gzip',
      vary: 'Origin, Accept-Encoding',
      etag: plain.headers.etag,
      'cache-control': 'public, max-age=60',
    });
    expect(gunzipSync(zipped.rawPayload).toString()).toBe(plain.body);
    expect(zipped.rawPayload.length).toBeLessThan(plain.body.length);
    const refused = await api.app.inject({ url, headers: { 'accept-encoding': 'gzip;q=0' } });
    expect(refused.headers).not.toHaveProperty('content-encoding');
    const known = await api.app.inject({ url, headers: { 'if-none-match': `"x", ${plain.headers.etag}` } });
    expect([known.statusCode, known.body]).toEqual([304, '']);
    expect((await api.app.inject({ method: 'HEAD', url })).body).toBe('');
  });
});

describe('what is refused', () => {
  let tenant: Tenant;
  beforeAll(async () => {
    tenant = await api.createTenant('Refused');
  });
  const refused = async (body: Record<string, unknown>) => {
    const answer = await api.request(tenant, 'POST', base(tenant), {
      type: 'site_app',
      hog: 'export {}',
      ...body,
    });
    return { status: answer.statusCode, ...answer.json() };
  };

  test('secret inputs, also those of mappings', async () => {
    const inputs_schema = [
      { key: 'a', type: 'string' },
      { key: 'b', type: 'string', secret: true },
    ];
    expect(await refused({ inputs_schema, inputs: { b: { value: 'top' } } })).toMatchObject({
      status: 400,
      attr: 'inputs_schema__1__secret',
      detail: 'A function that runs in browsers cannot have secret inputs: every visitor could read them.',
    });
    const mapped = { type: 'site_destination', mappings: [{ name: 'm', inputs_schema }] };
    expect(await refused(mapped)).toMatchObject({
      status: 400,
      attr: 'mappings__0__inputs_schema__1__secret',
    });
  });

  test('a secret that is in the database all the same is not served', async () => {
    const id = await create(tenant, { hog: 'export const onLoad = () => {}' });
    await becomes(tenant, [id]);
    await api.pool.query("update functions set secrets = 'sealed' where id = $1", [id]);
    await becomes(tenant, []);
    await api.pool.query('delete from functions where id = $1', [id]);
  });

  test.each([
    'const a = await 1',
    'export const a = 1; a = ;',
    'const a = 1; const a = 2',
    'import.meta.x()',
  ])('code that browsers cannot read: %s', async (hog) => {
    expect(await refused({ hog })).toMatchObject({ status: 400, attr: 'hog' });
  });

  test('more than the browsers of a project should load, whichever way it comes', async () => {
    const owner = await api.createTenant('Large');
    const hog = `export const onLoad = () => '${'x'.repeat(90_000)}'`;
    const made: string[] = [];
    let last = await api.request(owner, 'POST', base(owner), { type: 'site_app', hog, enabled: true });
    while (last.statusCode === 201) {
      made.push(last.json().id);
      last = await api.request(owner, 'POST', base(owner), { type: 'site_app', hog, enabled: true });
    }
    expect(last.json()).toMatchObject({
      attr: 'hog',
      detail: expect.stringContaining('may have 1024 KB of JavaScript together'),
    });
    const { rows } = await api.pool.query(
      'select sum(octet_length(transpiled))::int as bytes, max(octet_length(transpiled)) as one from functions where project_id = $1',
      [owner.projectId],
    );
    expect(rows[0].bytes).toBeLessThanOrEqual(MOST_SITE_BYTES);
    expect(rows[0].bytes + rows[0].one).toBeGreaterThan(MOST_SITE_BYTES);
    const disabled = await create(owner, { hog, enabled: false });
    const enabled = await api.request(owner, 'PATCH', `${base(owner)}${disabled}/`, { enabled: true });
    expect([enabled.statusCode, enabled.json().attr]).toEqual([400, 'hog']);
    // What came into the table in another way is left out from the end.
    await api.pool.query('update functions set enabled = true where id = $1', [disabled]);
    await becomes(owner, made);
    expect((await script(owner)).length).toBeLessThan(MOST_SITE_BYTES + 10_000);
  });
});

/** Functions that write down what they see. */
async function populate(tenant: Tenant): Promise<Record<'app' | 'mapped', string>> {
  await create(tenant, { hog: "export function onLoad() { throw new Error('broken') }", execution_order: 1 });
  await create(tenant, {
    type: 'site_destination',
    hog: "export function onEvent() { throw new Error('broken') }",
    execution_order: 2,
  });
  const app = await create(tenant, {
    hog: "export function onLoad({ inputs, posthog }) { window.seen.push(inputs.name + ' ' + typeof posthog.capture) }",
    inputs_schema: [{ key: 'name', type: 'string' }],
    inputs: { name: { value: 'app' } },
    execution_order: 3,
  });
  const mapped = await create(tenant, {
    type: 'site_destination',
    hog: "export function onEvent({ inputs, event }) { window.seen.push(event.event + ' ' + inputs.text) }",
    mappings: [
      {
        name: 'buys',
        inputs_schema: [{ key: 'text', type: 'string' }],
        inputs: { text: { value: 'for {event.properties.price}' } },
        filters: { events: [{ id: 'bought', type: 'events' }] },
      },
    ],
    execution_order: 4,
  });
  return { app, mapped };
}

const CLIENT_NAMES = ['posthog-js', 'posthog-js-1-200'];

describe.each(CLIENT_NAMES)('%s runs the functions', (name) => {
  const { found, reason } = findChromium();
  if (found === undefined) process.stderr.write(`skipped: ${name} with functions in Chromium: ${reason}\n`);

  async function inJsdom(tenant: Tenant): Promise<unknown> {
    const { output, code } = await runProgram(process.execPath, [
      'site.mjs',
      name,
      host,
      tenant.projectToken,
    ]);
    if (code !== 0) throw new Error(output);
    return JSON.parse(output);
  }

  async function inChromium(tenant: Tenant): Promise<unknown> {
    const folder = path.dirname(createRequire(import.meta.url).resolve(`${name}/package.json`));
    const use = `window.useSite(${JSON.stringify(host)}, ${JSON.stringify(tenant.projectToken)}, (seen) => fetch('/done', { method: 'POST', body: seen }))`;
    const files = {
      '/': `<!doctype html><title>Shop</title><body><script src="/library.js"></script><script src="/page.js"></script><script>${use}</script>`,
      '/page.js': `${readFileSync(path.join(CLIENTS, 'site.js'), 'utf8')}; window.useSite = useSite;`,
      '/library.js': readFileSync(path.join(folder, 'dist/array.js'), 'utf8'),
    };
    return JSON.parse(await browse(found as string, { files, path: '/' }));
  }

  async function expectLife(visit: (tenant: Tenant) => Promise<unknown>): Promise<void> {
    const tenant = await api.createTenant(name);
    const { app, mapped } = await populate(tenant);
    expect(await visit(tenant)).toEqual(['app function', 'bought for 5']);
    await change(tenant, app, { inputs: { name: { value: 'edited' } } });
    await change(tenant, mapped, { enabled: false });
    await eventually(
      async () => (await script(tenant)).includes('edited') && (await ids(tenant)).length === 3,
    );
    expect(await visit(tenant)).toEqual(['edited function']);
  }

  test('in jsdom', () => expectLife(inJsdom));
  (found === undefined ? test.skip : test)('in Chromium', () => expectLife(inChromium));
});

test('an older client gets no event twice, none of a function that could not load, and those while it loaded', () => {
  const seen: string[] = [];
  const hooks: ((event: object) => void)[] = [];
  const app = (id: string, answers: 'now' | 'never' | 'badly') => ({
    id,
    type: 'site_app' as const,
    transpiled: `(function(){return{init:function(c){
      if(${JSON.stringify(answers)}==='now')c.callback(true);
      if(${JSON.stringify(answers)}==='badly')c.callback(false);
      if(${JSON.stringify(answers)}==='never')window.ready=c.callback;
      return{processEvent:function(g){window.saw(${JSON.stringify(id)}+' '+g.event.event+' '+g.event.distinct_id)}}}}})`,
  });
  const window = {
    saw: (text: string) => seen.push(text),
    ready: (_ok: boolean) => undefined as unknown,
    '__$$ph_site_app_sluice-site-functions': {
      on: (_name: string, hook: (event: object) => void) => hooks.push(hook),
      get_property: () => undefined,
    },
  };
  const all = [app('now', 'now'), app('late', 'never'), app('bad', 'badly')];
  new Function('window', siteScript({ token: 't' }, all))(window);
  const tell = (event: string) => {
    for (const hook of hooks) hook({ event, properties: { distinct_id: 'ada' } });
  };
  tell('first');
  window.ready(true);
  tell('second');
  expect(seen).toEqual(['now first ada', 'late first ada', 'now second ada', 'late second ada']);
});
