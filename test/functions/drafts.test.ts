import { beforeAll, describe, expect, test } from '@jest/globals';
import { openInputs } from '../../functions/reads/secrets.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { type Drafting, drafting, EDITED, LIVE, OTHER, WEBHOOK } from './drafting.ts';

const api = apiForFile();
let anna: Tenant;
let berta: Tenant;
let functions: Drafting;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  berta = await api.createTenant('Berta');
  functions = drafting(api, anna);
});

const stale = { status: 409, body: { code: 'stale_update' } };

describe('a draft', () => {
  test('waits, and does not run', async () => {
    const { id, updated_at, bytecode } = await functions.create();
    const staged = await functions.stage(id, { hog: EDITED });
    expect(staged).toMatchObject({
      ...{ hog: LIVE, version: 1, updated_at, bytecode },
      draft: {
        hog: EDITED,
        inputs_schema: [{ key: 'url' }, { key: 'token' }],
        inputs: { url: { value: 'https://example.com/live' }, token: { secret: true } },
        ...{ filters: {}, masking: null, mappings: null },
      },
      draft_updated_at: expect.any(String),
    });
    expect(await functions.get(id)).toEqual(staged);
    const { body } = await functions.ask('GET', `?id=${id}`);
    expect(body.results[0]).toMatchObject({ hog: LIVE, draft_updated_at: staged.draft_updated_at });
    const whole = await functions.ask('GET', `?id=${id}&full=true`);
    expect(whole.body.results[0]).toEqual(staged);
  });

  test('keeps what earlier changes staged', async () => {
    const { id } = await functions.create();
    await functions.stage(id, { inputs: { url: { value: 'https://example.com/staged' } } });
    const { draft } = await functions.stage(id, { hog: EDITED });
    expect(draft).toMatchObject({ hog: EDITED, inputs: { url: { value: 'https://example.com/staged' } } });
  });

  test.each([
    ['1', true],
    ['false', false],
    ['0', false],
  ])('is asked for by ?draft=%s: %s', async (word, isStaged) => {
    const { id } = await functions.create();
    const { body } = await functions.ask('PATCH', `${id}/?draft=${word}`, { hog: EDITED });
    expect([body.hog, body.draft?.hog]).toEqual(isStaged ? [LIVE, EDITED] : [EDITED, undefined]);
  });

  test('is not asked for by a word that is misspelt, and nothing runs by mistake', async () => {
    const { id } = await functions.create();
    const { status } = await functions.ask('PATCH', `${id}/?draft=treu`, { hog: EDITED });
    expect([status, (await functions.get(id)).hog]).toEqual([400, LIVE]);
  });

  test.each([
    ['a destination that runs', {}, true],
    ['one that does not', { enabled: false }, false],
    ['a transformation', { type: 'transformation', hog: 'return event' }, false],
  ])('is what an agent makes of %s', async (_what, more, isStaged) => {
    const { id } = await functions.create(more);
    const { body } = await functions.ask('PATCH', `${id}/`, { hog: OTHER }, { 'x-posthog-client': 'mcp' });
    expect(body.draft?.hog === OTHER).toBe(isStaged);
    expect(body.hog === OTHER).toBe(!isStaged);
  });

  test.each([
    ['a destination that would run at once', {}, 400],
    ['one that does not', { enabled: false }, 201],
    ['one that a template makes', { hog: undefined, template_id: 'template-webhook' }, 400],
    ['a transformation', { type: 'transformation', hog: 'return event' }, 201],
  ])('is no way for an agent to create %s without anybody looking', async (_what, more, status) => {
    const agent = { 'x-posthog-client': 'mcp' };
    const created = { ...WEBHOOK, ...more };
    const answer = await functions.ask('POST', '', created, agent);
    expect([answer.status, answer.body.attr]).toEqual([status, status === 400 ? 'enabled' : undefined]);
    expect((await functions.ask('POST', '', created)).status).toBe(201);
  });

  test('takes only what the function does; all else takes effect at once', async () => {
    const { id } = await functions.create();
    const both = await functions.stage(id, { hog: EDITED, name: 'Renamed', enabled: false });
    expect(both).toMatchObject({ name: 'Renamed', enabled: false, hog: LIVE, draft: { hog: EDITED } });
    const other = await functions.create();
    const renamed = await functions.stage(other.id, { name: 'Renamed' });
    expect(renamed).toMatchObject({ name: 'Renamed', draft: null, draft_updated_at: null });
  });

  test('is not made of what is sent again as it is', async () => {
    const { id } = await functions.create();
    const { draft } = await functions.stage(id, {
      hog: LIVE,
      inputs: { ...WEBHOOK.inputs, token: { secret: true } },
    });
    expect(draft).toBeNull();
    const staged = await functions.stage(id, { hog: EDITED });
    expect(await functions.stage(id, { hog: EDITED })).toEqual(staged);
    expect((await functions.log(id)).map((one: { activity: string }) => one.activity)).toEqual([
      'draft_updated',
      'created',
    ]);
  });

  test.each([
    ['a program that cannot be compiled', { hog: 'return (' }, 'hog'],
    ['a template that cannot be compiled', { inputs: { url: { value: '{event.' } } }, 'inputs__url'],
    ['an input that is missing', { inputs: {} }, 'inputs__url'],
    [
      'filters that cannot be compiled',
      { filters: { properties: [{ type: 'cohort', key: 'id', value: 5 }] } },
      'filters',
    ],
    ['another type', { hog: EDITED, type: 'site_app' }, 'type'],
  ])('is refused like any change: %s', async (_what, change, attr) => {
    const { id } = await functions.create();
    const { status, body } = await functions.ask('PATCH', `${id}/?draft=true`, change);
    expect([status, body.attr]).toEqual([400, attr]);
    expect((await functions.get(id)).draft).toBeNull();
  });

  test('belongs to one tenant', async () => {
    const { id } = await functions.create();
    await functions.stage(id, { hog: EDITED });
    const others = drafting(api, berta);
    for (const [method, path] of [
      ['GET', 'draft/'],
      ['GET', 'revisions/'],
      ['GET', 'revisions/1/'],
      ['POST', 'revisions/1/restore/'],
      ['POST', 'publish/'],
      ['POST', 'discard_draft/'],
    ] as const) {
      expect([path, (await others.ask(method, `${id}/${path}`)).status]).toEqual([path, 404]);
    }
    expect((await functions.get(id)).draft.hog).toBe(EDITED);
  });

  test('needs the scope to write, except to read it', async () => {
    const { id } = await functions.create();
    await functions.stage(id, { hog: EDITED });
    const { value: key } = await api.createKey(anna, { scopes: ['hog_function:read'] });
    const status = async (method: 'GET' | 'POST', path: string) =>
      (await functions.ask(method, `${id}/${path}`, undefined, { key })).status;
    expect([await status('GET', 'draft/'), await status('GET', 'revisions/')]).toEqual([200, 200]);
    for (const path of ['publish/', 'discard_draft/', 'revisions/1/restore/']) {
      expect([path, await status('POST', path)]).toEqual([path, 403]);
    }
  });

  test('goes with its project', async () => {
    const dora = await api.createTenant('Dora');
    const own = drafting(api, dora);
    const { id } = await own.create();
    await own.edit(id, { hog: OTHER });
    await own.stage(id, { hog: EDITED });
    expect((await api.request(dora, 'DELETE', `/api/projects/${dora.projectId}/`)).statusCode).toBe(204);
    for (const table of ['functions', 'function_drafts', 'function_revisions']) {
      const { rows } = await api.pool.query(`select from ${table} where project_id = $1`, [dora.projectId]);
      expect([table, rows.length]).toEqual([table, 0]);
    }
  });

  test('can be discarded, as often as one likes', async () => {
    const { id } = await functions.create();
    await functions.stage(id, {
      hog: EDITED,
      inputs: { ...WEBHOOK.inputs, token: { value: 'staged-token' } },
    });
    for (const _again of [1, 2]) {
      const { status, body } = await functions.ask('POST', `${id}/discard_draft/`);
      expect([status, body.hog, body.draft, body.draft_updated_at]).toEqual([200, LIVE, null, null]);
    }
    const discarded = (await functions.log(id)).filter(
      (one: { activity: string }) => one.activity === 'draft_discarded',
    );
    expect(discarded).toHaveLength(1);
    expect(await functions.ask('GET', `${id}/draft/`)).toMatchObject({ status: 404 });
  });

  test('has to be settled before its function is enabled', async () => {
    const { id } = await functions.create({ enabled: false });
    const both = await functions.ask('PATCH', `${id}/?draft=true`, { hog: EDITED, enabled: true });
    expect(both).toMatchObject({ status: 400, body: { attr: 'enabled' } });
    await functions.stage(id, { hog: EDITED });
    for (const path of [`${id}/`, `${id}/?draft=true`]) {
      const answer = await functions.ask('PATCH', path, { enabled: true });
      expect(answer).toMatchObject({ status: 400, body: { attr: 'enabled', detail: /has a draft/ } });
    }
    await functions.ask('POST', `${id}/discard_draft/`);
    expect((await functions.edit(id, { enabled: true })).enabled).toBe(true);
  });
});

describe('what a draft is based on', () => {
  test('can be said', async () => {
    const { id, updated_at } = await functions.create();
    const { draft_updated_at: first } = await functions.stage(id, {
      hog: EDITED,
      base_updated_at: updated_at,
    });
    const { draft_updated_at: second } = await functions.stage(id, { hog: OTHER, base_updated_at: first });
    expect(second).not.toBe(first);
    const old = { base_updated_at: '2020-01-01T00:00:00Z' };
    expect(await functions.ask('PATCH', `${id}/?draft=true`, { hog: LIVE, ...old })).toMatchObject(stale);
    expect(await functions.ask('PATCH', `${id}/`, { hog: EDITED, ...old })).toMatchObject(stale);
    expect((await functions.get(id)).draft.hog).toBe(OTHER);
  });
});

describe('secrets of a draft', () => {
  const url = { value: 'https://example.com/staged' };

  test('are sealed, and shown nowhere', async () => {
    const { id } = await functions.create();
    const staged = await functions.stage(id, { inputs: { url, token: { value: 'staged-token' } } });
    expect(staged.draft.inputs.token).toEqual({ secret: true });
    const shown = [staged, await functions.ask('GET', `${id}/draft/`), await functions.preview(id)];
    const { rows } = await api.pool.query('select * from function_drafts where function_id = $1', [id]);
    expect(rows[0].secrets).toMatch(/^slc1\./);
    const log = await functions.log(id);
    expect(log[0]).toMatchObject({ activity: 'draft_updated' });
    expect(log[0].detail.changes).toContainEqual({
      ...{ field: 'encrypted_inputs', before: 'masked', after: 'masked' },
    });
    expect(JSON.stringify([shown, rows, log])).not.toMatch(/(staged|live)-token/);
  });

  test('are the new ones when the draft is published', async () => {
    const { id } = await functions.create();
    await functions.stage(id, { inputs: { url, token: { value: 'staged-token' } } });
    // What an interface sends back keeps what was staged.
    await functions.stage(id, { inputs: { url, token: { secret: true } } });
    await functions.stage(id, { hog: EDITED });
    expect(await functions.secrets(id)).toMatchObject({ token: { value: 'live-token' } });
    await functions.publish(id);
    expect(await functions.secrets(id)).toMatchObject({ token: { value: 'staged-token' } });
  });

  test('that it keeps are those of the function when it is published', async () => {
    const { id } = await functions.create();
    await functions.stage(id, { hog: EDITED, inputs: { url, token: { secret: true } } });
    await functions.edit(id, { inputs: { ...WEBHOOK.inputs, token: { value: 'rotated-token' } } });
    await functions.publish(id);
    expect(await functions.secrets(id)).toMatchObject({ token: { value: 'rotated-token' } });
  });

  test('that it keeps and the function has lost are asked for', async () => {
    const { id } = await functions.create({ enabled: false });
    await functions.stage(id, {
      inputs_schema: [WEBHOOK.inputs_schema[0], { ...WEBHOOK.inputs_schema[1], required: true }],
    });
    await functions.edit(id, { inputs_schema: [WEBHOOK.inputs_schema[0]] });
    const { confirm_token } = await functions.preview(id);
    const { status, body } = await functions.ask('POST', `${id}/publish/`, { confirm: true, confirm_token });
    expect([status, body.attr]).toEqual([400, 'inputs__token']);
    expect((await functions.get(id)).draft).not.toBeNull();
  });

  test('may be of mappings, and of inputs that become secret', async () => {
    const schema = [{ key: 'token', type: 'string', secret: true }];
    const mapping = (name: string, value?: string) => ({
      name,
      inputs_schema: schema,
      inputs: { token: value === undefined ? { secret: true } : { value } },
    });
    const { id } = await functions.create({ mappings: [mapping('a', 'live-a'), mapping('b', 'live-b')] });
    const staged = await functions.stage(id, {
      mappings: [mapping('b'), mapping('a', 'staged-a')],
      inputs_schema: [{ key: 'url', type: 'string', secret: true }],
    });
    expect(staged.draft).toMatchObject({
      inputs: { url: { secret: true } },
      mappings: [{ inputs: { token: { secret: true } } }, { inputs: { token: { secret: true } } }],
    });
    const { changes } = await functions.preview(id);
    expect(changes.find((one: { field: string }) => one.field === 'mappings').secret_inputs).toEqual([
      '1__token',
    ]);
    const published = await functions.publish(id);
    expect(JSON.stringify([staged.draft, changes, published.function.inputs])).not.toMatch(/(live|staged)-/);
    const { rows } = await api.pool.query('select id, secrets from functions where id = $1', [id]);
    expect(openInputs(api.keyring, rows[0])).toMatchObject({
      inputs: { url: { value: 'https://example.com/live' } },
      mappings: [
        { name: 'b', inputs: { token: { value: 'live-b' } } },
        { name: 'a', inputs: { token: { value: 'staged-a' } } },
      ],
    });
  });
});

describe('the difference to what runs', () => {
  test('names the fields with both values', async () => {
    const { id } = await functions.create();
    const filters = { events: [{ id: 'paid', type: 'events' }] };
    await functions.stage(id, { hog: EDITED, filters });
    const { status, body } = await functions.ask('GET', `${id}/draft/`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ version: 1, base_version: 1, draft: { hog: EDITED, filters } });
    expect(body.changes).toEqual([
      { field: 'filters', live: {}, draft: filters, secret_inputs: [] },
      { field: 'hog', live: LIVE, draft: EDITED, secret_inputs: [] },
    ]);
  });

  test('names secrets that get another value, and only those', async () => {
    const { id } = await functions.create();
    const staged = { ...WEBHOOK.inputs, token: { value: 'live-token' } };
    await functions.stage(id, { hog: EDITED, inputs: staged });
    expect((await functions.preview(id)).changed_fields).toEqual(['hog']);
    await functions.stage(id, { inputs: { ...staged, token: { value: 'staged-token' } } });
    const { changed_fields, changes } = await functions.preview(id);
    expect(changed_fields).toEqual(['hog', 'inputs']);
    expect(changes[1]).toMatchObject({
      ...{ live: { token: { secret: true } }, draft: { token: { secret: true } } },
      secret_inputs: ['token'],
    });
  });
});
