import { beforeAll, describe, expect, test } from '@jest/globals';
import { stepsOf, versionsOf } from '../../actions/reads/steps-of.ts';
import { cohortsToInline } from '../../cohorts/reads/reached-cohorts.ts';
import { makeToken } from '../../functions/rules/publish-token.ts';
import { recompileFunctions } from '../../functions/runs/recompile.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { type Answer, type Drafting, drafting, EDITED, LIVE, OTHER, together, WEBHOOK } from './drafting.ts';

const api = apiForFile();
let anna: Tenant;
let functions: Drafting;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  functions = drafting(api, anna);
});

const stale = { status: 409, body: { code: 'stale_update' } };
const statuses = (answers: Answer[]) => answers.map(({ status }) => status).toSorted();
const staged = async (more: object = {}) => {
  const { id } = await functions.create(more);
  await functions.stage(id, { hog: EDITED });
  return id;
};

describe('publishing', () => {
  test.each([[{}], [{ preview: true }], [{ confirm: false }], [undefined]])(
    'shows with %j what it would change, and changes nothing',
    async (body) => {
      const id = await staged();
      const before = await functions.get(id);
      expect(await functions.ask('POST', `${id}/publish/`, body)).toEqual({
        status: 200,
        body: {
          ...{ published: false, function: null, draft_updated_at: before.draft_updated_at },
          ...{ changed_fields: ['hog'], confirm_token: expect.any(String) },
          changes: [{ field: 'hog', live: LIVE, draft: EDITED, secret_inputs: [] }],
        },
      });
      expect(await functions.get(id)).toEqual(before);
    },
  );

  test('makes the draft what runs', async () => {
    const id = await staged();
    const { published, function: after, ...more } = await functions.publish(id);
    expect(published).toBe(true);
    expect(more).toEqual({
      draft_updated_at: null,
      confirm_token: null,
      changed_fields: null,
      changes: null,
    });
    expect(after).toMatchObject({
      hog: EDITED,
      version: 2,
      draft: null,
      draft_updated_at: null,
      enabled: true,
    });
    expect(after.bytecode).toContain('PUT');
    expect(await functions.get(id)).toEqual(after);
    const [entry] = await functions.log(id);
    expect(entry).toMatchObject({
      activity: 'published',
      detail: { name: 'Webhook', changes: [{ field: 'hog', before: LIVE, after: EDITED }] },
    });
  });

  test('is refused without a draft', async () => {
    const { id } = await functions.create();
    for (const body of [{}, { confirm: true }]) {
      const answer = await functions.ask('POST', `${id}/publish/`, body);
      expect(answer).toMatchObject({ status: 400, body: { attr: null, detail: /no staged draft/ } });
    }
  });

  test('of what runs needs a token', async () => {
    const id = await staged();
    const other = await staged();
    const { confirm_token: foreign } = await functions.preview(other);
    const { rows } = await api.pool.query('select publish_key from functions where id = $1', [id]);
    const { updated_at: updatedAt, draft_updated_at: draftUpdatedAt } = await functions.get(id);
    const made = (minutes: number) =>
      makeToken(
        rows[0].publish_key,
        { functionId: id, updatedAt, draftUpdatedAt },
        Date.now() - minutes * 60_000,
      );
    for (const [token, code, detail] of [
      [undefined, 'required', /Preview the draft first/],
      ['', 'invalid_input', /no token of this function/],
      ['nonsense', 'invalid_input', /no token of this function/],
      [foreign, 'invalid_input', /no token of this function/],
      [made(16), 'invalid_input', /older than 15 minutes/],
    ] as const) {
      const body = { confirm: true, confirm_token: token };
      const answer = await functions.ask('POST', `${id}/publish/`, body);
      expect(answer).toMatchObject({ status: 400, body: { attr: 'confirm_token', code, detail } });
    }
    expect(await functions.get(id)).toMatchObject({ hog: LIVE, draft: { hog: EDITED } });
    const answer = await functions.ask('POST', `${id}/publish/`, { preview: false, confirm_token: made(14) });
    expect(answer).toMatchObject({ status: 200, body: { published: true } });
  });

  test.each<[string, (id: string) => Promise<unknown>]>([
    ['the draft', (id) => functions.stage(id, { hog: OTHER })],
    ['the function', (id) => functions.edit(id, { name: 'Renamed' })],
    [
      'the draft, which is another one now,',
      async (id) => {
        await functions.ask('POST', `${id}/discard_draft/`);
        await functions.stage(id, { hog: EDITED });
      },
    ],
    ['the draft, which is gone,', (id) => functions.ask('POST', `${id}/discard_draft/`)],
  ])('is refused if %s has changed since the preview', async (_what, change) => {
    const id = await staged();
    const { confirm_token } = await functions.preview(id);
    await change(id);
    const answer = await functions.ask('POST', `${id}/publish/`, { confirm: true, confirm_token });
    expect(answer).toMatchObject(stale);
    expect((await functions.get(id)).hog).toBe(LIVE);
  });

  test('needs no token where nothing runs', async () => {
    const id = await staged({ enabled: false });
    await functions.edit(id, { name: 'Renamed' });
    const { status, body } = await functions.ask('POST', `${id}/publish/`, { confirm: true });
    expect([status, body.function]).toMatchObject([200, { hog: EDITED, name: 'Renamed' }]);
  });

  test('does not undo unseen what was changed since the draft began', async () => {
    const id = await staged({ enabled: false });
    await functions.edit(id, { filters: { events: [{ id: 'paid' }] } });
    // A later change of the draft does not mean that somebody has seen this.
    await functions.stage(id, { hog: OTHER });
    expect(await functions.ask('POST', `${id}/publish/`, { confirm: true })).toMatchObject({
      ...{ status: 409, body: { code: 'stale_update', detail: /Preview the draft/ } },
    });
    const { body } = await functions.ask('GET', `${id}/draft/`);
    expect(body).toMatchObject({ version: 2, base_version: 1 });
    expect((await functions.preview(id)).changed_fields).toEqual(['filters', 'hog']);
    const { function: after } = await functions.publish(id);
    expect(after).toMatchObject({ hog: OTHER, filters: { bytecode: ['_H', 1, 29] } });
  });

  test('of a draft that changes nothing makes no version', async () => {
    const id = await staged();
    await functions.stage(id, { hog: LIVE });
    const { function: after } = await functions.publish(id);
    expect(after).toMatchObject({ version: 1, draft: null });
  });

  test('compiles once more, so that it uses actions as they are now', async () => {
    const url = `/api/projects/${anna.projectId}/actions/`;
    const action = await api.request(anna, 'POST', url, { name: 'paid', steps: [{ event: 'paid' }] });
    const { id } = await functions.create();
    const filters = { actions: [{ id: String(action.json().id), type: 'actions' }] };
    await functions.stage(id, { filters });
    await api.request(anna, 'PATCH', `${url}${action.json().id}/`, { steps: [{ event: 'bought' }] });
    const deps = {
      ...{ pool: api.pool, compiler: api.functionCompiler, keyring: api.keyring },
      actions: { steps: stepsOf, versions: versionsOf },
      cohorts: cohortsToInline,
      logger: { warn: () => undefined, info: () => undefined },
    };
    const work = { signal: new AbortController().signal, beat: () => undefined };
    await recompileFunctions(deps, work);
    const before = await functions.get(id);
    expect(before.draft.filters).toEqual(filters);
    const { function: after } = await functions.publish(id);
    expect(after.filters.bytecode).toContain('bought');
    // From now on the function follows the action.
    await api.request(anna, 'PATCH', `${url}${action.json().id}/`, { steps: [{ event: 'sold' }] });
    await recompileFunctions(deps, work);
    expect((await functions.get(id)).filters.bytecode).toContain('sold');
  });

  test('compiles functions of browsers too', async () => {
    const hog = 'export function onLoad() { console.log("runs now") }';
    const { id } = await functions.create({ type: 'site_app', hog, inputs_schema: [], inputs: {} });
    await functions.stage(id, { hog: hog.replace('runs now', 'waits') });
    expect((await functions.get(id)).transpiled).not.toContain('waits');
    const { function: after } = await functions.publish(id);
    expect(after.transpiled).toContain('"waits"');
  });
});

describe('at once', () => {
  const publish = (id: string, confirm_token?: string) => () =>
    functions.ask('POST', `${id}/publish/`, { confirm: true, confirm_token });

  test.each([[true], [false]])('two publish, enabled %s: one of them does', async (enabled) => {
    const id = await staged({ enabled });
    const { confirm_token } = await functions.preview(id);
    const token = enabled ? confirm_token : undefined;
    const answers = await together(api, id, [publish(id, token), publish(id, token)]);
    expect(statuses(answers)).toEqual([200, 409]);
    expect(answers.find(({ status }) => status === 409)).toMatchObject(stale);
    expect(await functions.get(id)).toMatchObject({ hog: EDITED, version: 2 });
    const published = (await functions.log(id)).filter(
      (one: { activity: string }) => one.activity === 'published',
    );
    expect(published).toHaveLength(1);
  });

  test('one publishes and one changes the same field: one of them hears of the other', async () => {
    const id = await staged();
    const { confirm_token } = await functions.preview(id);
    const answers = await together(api, id, [
      publish(id, confirm_token),
      () => functions.ask('PATCH', `${id}/`, { hog: OTHER }),
    ]);
    expect(statuses(answers)).toEqual([200, 409]);
    const isPublished = answers[0]?.status === 200;
    const { hog, draft, version } = await functions.get(id);
    expect([hog, draft?.hog, version]).toEqual(isPublished ? [EDITED, undefined, 2] : [OTHER, EDITED, 2]);
  });

  test('one publishes what does not run and one renames it: both do', async () => {
    const id = await staged({ enabled: false });
    const answers = await together(api, id, [
      publish(id),
      () => functions.ask('PATCH', `${id}/`, { name: 'Renamed' }),
    ]);
    expect(statuses(answers)).toEqual([200, 200]);
    expect(await functions.get(id)).toMatchObject({ hog: EDITED, name: 'Renamed', draft: null });
  });

  test('one publishes and one saves the draft: nothing runs that nobody has seen', async () => {
    const id = await staged({ enabled: false });
    const answers = await together(api, id, [
      publish(id),
      () => functions.ask('PATCH', `${id}/?draft=true`, { hog: OTHER }),
    ]);
    const { hog, draft } = await functions.get(id);
    expect([answers[1]?.status, draft.hog]).toEqual([200, OTHER]);
    // What was saved is the next draft, or the one that its author has not seen yet.
    const isPublished = answers[0]?.status === 200;
    expect(hog).toBe(isPublished ? EDITED : LIVE);
    if (!isPublished) expect(answers[0]).toMatchObject(stale);
  });

  test('two save drafts: both stay, or the later one hears of the other', async () => {
    const id = await staged();
    const save = (change: object) => () => functions.ask('PATCH', `${id}/?draft=true`, change);
    const filters = { events: [{ id: 'paid' }] };
    expect(statuses(await together(api, id, [save({ hog: OTHER }), save({ filters })]))).toEqual([200, 200]);
    expect((await functions.get(id)).draft).toMatchObject({ hog: OTHER, filters });
    const answers = await together(api, id, [save({ hog: LIVE }), save({ hog: EDITED })]);
    expect(statuses(answers)).toEqual([200, 409]);
    const winner = answers.find(({ status }) => status === 200);
    expect((await functions.get(id)).draft.hog).toBe(winner?.body.draft.hog);
  });

  test.each(['', '?draft=true'])(
    'two replace the same secret%s: the later one hears of the other',
    async (query) => {
      const { id } = await functions.create();
      const replace = (value: string) => () =>
        functions.ask('PATCH', `${id}/${query}`, { inputs: { ...WEBHOOK.inputs, token: { value } } });
      const answers = await together(api, id, [replace('one-token'), replace('two-token')]);
      expect(statuses(answers)).toEqual([200, 409]);
      expect(answers.find(({ status }) => status === 409)).toMatchObject(stale);
      if (query) await functions.publish(id);
      const value = answers[0]?.status === 200 ? 'one-token' : 'two-token';
      expect(await functions.secrets(id)).toMatchObject({ token: { value } });
    },
  );

  test('one publishes a secret and one replaces it: the later one hears of the other', async () => {
    const { id } = await functions.create();
    const replaced = (value: string) => ({ inputs: { ...WEBHOOK.inputs, token: { value } } });
    await functions.stage(id, replaced('staged-token'));
    const { confirm_token } = await functions.preview(id);
    const answers = await together(api, id, [
      publish(id, confirm_token),
      () => functions.ask('PATCH', `${id}/`, replaced('other-token')),
    ]);
    expect(statuses(answers)).toEqual([200, 409]);
    const value = answers[0]?.status === 200 ? 'staged-token' : 'other-token';
    expect(await functions.secrets(id)).toMatchObject({ token: { value } });
  });

  test('one changes a secret and one the program: both stay', async () => {
    const { id } = await functions.create();
    const answers = await together(api, id, [
      () =>
        functions.ask('PATCH', `${id}/`, { inputs: { ...WEBHOOK.inputs, token: { value: 'other-token' } } }),
      () => functions.ask('PATCH', `${id}/`, { hog: EDITED }),
    ]);
    expect(statuses(answers)).toEqual([200, 200]);
    expect(await functions.get(id)).toMatchObject({ hog: EDITED, version: 3 });
    expect(await functions.secrets(id)).toMatchObject({ token: { value: 'other-token' } });
  });

  test('one enables and one saves a draft: what runs is what was seen', async () => {
    const { id } = await functions.create({ enabled: false });
    const answers = await together(api, id, [
      () => functions.ask('PATCH', `${id}/`, { enabled: true }),
      () => functions.ask('PATCH', `${id}/?draft=true`, { hog: EDITED }),
    ]);
    const { enabled, draft, hog } = await functions.get(id);
    expect([draft.hog, hog]).toEqual([EDITED, LIVE]);
    expect(answers.map(({ status }) => status)).toEqual(enabled ? [200, 200] : [400, 200]);
  });

  test('one restores and one saves a draft: the later one hears of the other', async () => {
    const { id } = await functions.create();
    await functions.edit(id, { hog: OTHER });
    const answers = await together(api, id, [
      () => functions.ask('POST', `${id}/revisions/1/restore/`),
      () => functions.ask('PATCH', `${id}/?draft=true`, { hog: EDITED }),
    ]);
    expect(statuses(answers)).toEqual([200, 409]);
    const isRestored = answers[0]?.status === 200;
    expect((await functions.get(id)).draft.hog).toBe(isRestored ? WEBHOOK.hog : EDITED);
    const later = answers[isRestored ? 1 : 0];
    expect(later?.body.code).toBe(isRestored ? 'stale_update' : 'draft_exists');
  });
});
