import { describe, expect, test } from '@jest/globals';
import { knownCohorts } from '../../cohorts/reads/known-cohorts.ts';
import { transaction } from '../../db/pool.ts';
import { changeLinkedFlag } from '../../flags/runs/linked-flags.ts';
import type { SurveyFlags } from '../../surveys/commands/surveys.ts';
import { advanceSurveys } from '../../surveys/runs/iterations.ts';
import { endFullSurveys } from '../../surveys/runs/limits.ts';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { queriesOf } from '../support/query-log.ts';

const api = apiForFile();
const { anna, bert } = tenantsForFile(api, 'anna', 'bert');

type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';
async function ask(method: Method, rest: string, body?: object, tenant = anna) {
  const url = `/api/projects/${tenant.projectId}/${rest}`;
  const answer = await api.request(tenant, method, url, body);
  return { status: answer.statusCode, body: answer.body === '' ? null : answer.json() };
}
const commandsOfFlags = () => ({
  ...{ keyring: api.keyring, knownCohorts },
  limits: { flags: 5_000, bytes: 16_000_000 },
});
const open = { type: 'open', question: 'Why?' };
const NOW = new Date().toISOString();
const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();
async function create(body: object = {}, tenant = anna) {
  const made = await ask(
    'POST',
    'surveys/',
    { name: 'S', type: 'popover', questions: [open], ...body },
    tenant,
  );
  expect([made.status, made.body]).toEqual([201, expect.anything()]);
  return made.body;
}
const change = (id: string, body: object, tenant = anna) => ask('PATCH', `surveys/${id}/`, body, tenant);
async function offered(tenant: Tenant): Promise<Record<string, unknown>[]> {
  const answer = await api.app.inject({ url: `/api/surveys/?token=${tenant.projectToken}` });
  expect(answer.statusCode).toBe(200);
  return answer.json().surveys;
}
const config = async (tenant: Tenant) =>
  (await api.app.inject({ url: `/array/${tenant.projectToken}/config` })).json();
const flags = async (tenant: Tenant, properties = {}) => {
  const payload = { api_key: tenant.projectToken, distinct_id: 'u', person_properties: properties };
  return (await api.app.inject({ method: 'POST', url: '/flags?v=2', payload })).json().flags;
};

describe('a survey', () => {
  test('is a draft until it begins; then clients get it, and its flag is on until it ends', async () => {
    const tenant = await api.createTenant('Course');
    const given = { description: 'Notes', appearance: { zIndex: '9' }, conditions: { url: '/shop' } };
    const draft = await create(given, tenant);
    expect(draft).toMatchObject({
      ...{ start_date: null, end_date: null, archived: false, schedule: 'once', description: 'Notes' },
      created_by: { email: tenant.email },
      questions: [{ ...open, id: expect.any(String) }],
      internal_targeting_flag: { key: `survey-targeting-${draft.id}`, active: false },
    });
    expect([await offered(tenant), (await config(tenant)).surveys]).toEqual([[], false]);
    const started = await change(draft.id, { start_date: NOW }, tenant);
    expect(started.body.internal_targeting_flag.active).toBe(true);
    await eventually(async () => (await offered(tenant)).length === 1);
    expect(await offered(tenant)).toEqual([
      {
        // Descriptions are for those who manage surveys.
        ...{ id: draft.id, name: 'S', type: 'popover', schedule: 'once' },
        ...{ questions: draft.questions, conditions: { url: '/shop' }, appearance: { zIndex: '9' } },
        ...{ start_date: expect.any(String), end_date: null, enable_partial_responses: false },
        ...{ linked_flag_key: null, targeting_flag_key: null, feature_flag_keys: null },
        ...{ internal_targeting_flag_key: `survey-targeting-${draft.id}` },
        ...{ current_iteration: null, current_iteration_start_date: null },
      },
    ]);
    await eventually(async () => (await config(tenant)).surveys === true);
    const script = (await api.app.inject({ url: `/array/${tenant.projectToken}/config.js` })).body;
    expect(script).toContain('"surveys":true');
    const key = `survey-targeting-${draft.id}`;
    await eventually(async () => (await flags(tenant))[key]?.enabled === true);
    expect((await flags(tenant, { [`$survey_responded/${draft.id}`]: true }))[key].enabled).toBe(false);
    expect((await flags(tenant, { [`$survey_dismissed/${draft.id}`]: true }))[key].enabled).toBe(false);
    await change(draft.id, { schedule: 'always' }, tenant);
    await eventually(
      async () => (await flags(tenant, { [`$survey_responded/${draft.id}`]: true }))[key].enabled === true,
    );
    const ended = await change(draft.id, { end_date: new Date().toISOString() }, tenant);
    expect(ended.body.internal_targeting_flag.active).toBe(false);
    await eventually(async () => (await offered(tenant)).length === 0);
    await eventually(async () => (await config(tenant)).surveys === false);
  });

  test('is shown to who has a flag, and to whom its own filters match', async () => {
    const tenant = await api.createTenant('Targets');
    const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] };
    const { body: linked } = await ask(
      'POST',
      'feature_flags/',
      { key: 'linked', filters: everybody },
      tenant,
    );
    const email = { key: 'email', type: 'person', operator: 'icontains', value: '@acme' };
    const targeting_flag_filters = { groups: [{ properties: [email], rollout_percentage: 100 }] };
    const made = await create({ linked_flag_id: linked.id, targeting_flag_filters, start_date: NOW }, tenant);
    const key = made.targeting_flag.key;
    expect(made).toMatchObject({ linked_flag: { key: 'linked' }, targeting_flag: { active: true } });
    await eventually(async () => (await offered(tenant))[0]?.linked_flag_key === 'linked');
    expect((await offered(tenant))[0]?.targeting_flag_key).toBe(key);
    await eventually(async () => (await flags(tenant, { email: 'a@acme.com' }))[key]?.enabled === true);
    expect((await flags(tenant, { email: 'a@b.com' }))[key].enabled).toBe(false);
    await ask('PATCH', `feature_flags/${linked.id}/`, { key: 'renamed' }, tenant);
    await eventually(async () => (await offered(tenant))[0]?.linked_flag_key === 'renamed');
    const without = await change(made.id, { remove_targeting_flag: true }, tenant);
    expect(without.body.targeting_flag).toBeNull();
    const again = await change(made.id, { targeting_flag_filters }, tenant);
    expect(again.body.targeting_flag).toMatchObject({ key, active: true });
    // Server SDKs get none of the flags of surveys.
    const definitions = await api.request(
      tenant,
      'GET',
      `/api/projects/${tenant.projectId}/feature_flags/local_evaluation/`,
    );
    expect(definitions.json().flags.map((one: { key: string }) => one.key)).toEqual(['renamed']);
    expect((await ask('DELETE', `surveys/${made.id}/`, undefined, tenant)).status).toBe(204);
    await eventually(async () => Object.keys(await flags(tenant)).join() === 'renamed');
  });

  test('ends when it has as many answers as it wants; those that are not complete do not count', async () => {
    const tenant = await api.createTenant('Limits');
    const made = await create({ responses_limit: 2, start_date: NOW }, tenant);
    const answer = async (properties: object) => {
      const event = { event: 'survey sent', distinct_id: 'u', properties };
      const payload = { api_key: tenant.projectToken, ...event };
      expect((await api.app.inject({ method: 'POST', url: '/i/v0/e/', payload })).statusCode).toBe(200);
    };
    const look = () =>
      endFullSurveys({ pool: api.pool }, { signal: new AbortController().signal, beat: () => undefined });
    await answer({ $survey_id: made.id });
    await answer({ $survey_id: made.id, $survey_completed: false });
    await answer({ $survey_id: 'another' });
    expect(await look()).toBe(0);
    await answer({ $survey_id: made.id, $survey_completed: true });
    expect(await look()).toBe(1);
    expect(await look()).toBe(0);
    const { body } = await ask('GET', `surveys/${made.id}/`, undefined, tenant);
    expect(body.end_date).not.toBeNull();
  });

  test('of a project whose answers cannot be counted holds up none of other projects, and many are counted at once', async () => {
    const [slow, quick] = [await api.createTenant('Slow'), await api.createTenant('Quick')];
    const limited = { responses_limit: 1, start_date: NOW };
    const held = await create(limited, slow);
    const surveys = [
      await create(limited, quick),
      await create(limited, quick),
      await create(limited, quick),
    ];
    for (const [tenant, { id }] of [[slow, held], ...surveys.map((one) => [quick, one] as const)] as const) {
      const event = { event: 'survey sent', distinct_id: 'a', properties: { $survey_id: id } };
      const payload = { api_key: tenant.projectToken, ...event };
      await api.app.inject({ method: 'POST', url: '/i/v0/e/', payload });
    }
    const work = { signal: new AbortController().signal, beat: () => undefined };
    const look = () => endFullSurveys({ pool: api.pool }, work, { counting: 500 });
    const ended = async () => {
      const { rows } = await api.pool.query(
        'select project_id from surveys where project_id = any($1::int[]) and end_date is not null',
        [[slow.projectId, quick.projectId]],
      );
      return rows.map((row) => row.project_id);
    };
    await transaction(api.pool, async (client) => {
      await client.query('select from surveys where id = $1 for update', [held.id]);
      const { queries } = await queriesOf(() => expect(look()).rejects.toMatchObject({ code: '57014' }));
      expect(queries.filter((text) => text.includes("event = 'survey sent'"))).toHaveLength(2);
    });
    expect(await ended()).toEqual([quick.projectId, quick.projectId, quick.projectId]);
    await look();
    expect(await ended()).toContain(slow.projectId);
  });

  test('that cannot go on holds up none of the others', async () => {
    const start = new Date(Date.now() - 2 * 86_400_000).toISOString();
    const repeated = { iteration_count: 1, iteration_frequency_days: 1, schedule: 'recurring' };
    const [stuck, fine] = [await api.createTenant('Stuck'), await api.createTenant('Fine')];
    const blocked = await create({ ...repeated, start_date: start }, stuck);
    const free = await create({ ...repeated, start_date: start }, fine);
    const needed = { type: 'flag', operator: 'flag_evaluates_to', value: true };
    const filters = {
      groups: [{ properties: [{ ...needed, key: `${blocked.internal_targeting_flag.id}` }] }],
    };
    await api.pool.query(
      'update surveys set end_date = null, current_iteration = 1 where id = any($1::uuid[])',
      [[blocked.id, free.id]],
    );
    await api.pool.query('update feature_flags set active = true where id = any($1::int[])', [
      [blocked.internal_targeting_flag.id, free.internal_targeting_flag.id],
    ]);
    const asking = await ask('POST', 'feature_flags/', { key: 'needs-the-survey', filters }, stuck);
    expect(asking.status).toBe(201);
    const work = { signal: new AbortController().signal, beat: () => undefined };
    const change = (...[client, actor, key, to]: Parameters<SurveyFlags['change']>) =>
      changeLinkedFlag(client, commandsOfFlags(), actor, key, to);
    await expect(advanceSurveys({ pool: api.pool, flags: { change } }, work)).rejects.toThrow(
      'because other flags depend on it',
    );
    const { rows } = await api.pool.query(
      'select id from surveys where id = any($1::uuid[]) and end_date is not null',
      [[blocked.id, free.id]],
    );
    expect(rows).toEqual([{ id: free.id }]);
    await api.pool.query('delete from surveys where id = $1', [blocked.id]);
  });

  test('is asked again to everybody at each iteration, and ends after the last one', async () => {
    const tenant = await api.createTenant('Iterations');
    const repeated = { iteration_count: 2, iteration_frequency_days: 30, schedule: 'recurring' };
    const draft = await create(repeated, tenant);
    expect(draft).toMatchObject({
      ...{ ...repeated, iteration_start_dates: null },
      ...{ current_iteration: null, current_iteration_start_date: null },
    });
    const begins = new Date(Math.floor((Date.now() - 86_400_000) / 1_000) * 1_000);
    const timeAfter = (days: number) => begins.getTime() + days * 86_400_000;
    const told = (days: number) => new Date(timeAfter(days)).toISOString().replace('.000', '');
    const started = (await change(draft.id, { start_date: begins.toISOString() }, tenant)).body;
    expect(started).toMatchObject({
      ...{ iteration_start_dates: [told(0), told(30)], current_iteration: 1 },
      current_iteration_start_date: told(0),
    });
    const asked = (survey: {
      internal_targeting_flag: { filters: { groups: { properties: unknown[] }[] } };
    }) => survey.internal_targeting_flag.filters.groups[0]?.properties;
    const left = (iteration: number) =>
      ['dismissed', 'responded'].map((what) =>
        expect.objectContaining({ key: `$survey_${what}/${draft.id}/${iteration}`, operator: 'is_not_set' }),
      );
    expect(asked(started)).toEqual(left(1));
    await eventually(async () => (await offered(tenant))[0]?.current_iteration === 1);
    const work = { signal: new AbortController().signal, beat: () => undefined };
    const flagsOfSurveys = {
      change: (...[client, actor, key, change]: Parameters<SurveyFlags['change']>) =>
        changeLinkedFlag(client, commandsOfFlags(), actor, key, change),
    };
    const look = (days: number) =>
      advanceSurveys({ pool: api.pool, flags: flagsOfSurveys }, work, () => timeAfter(days));
    const shown = async () => (await ask('GET', `surveys/${draft.id}/`, undefined, tenant)).body;
    expect(await look(29.9)).toBe(0);
    expect(await look(30.1)).toBe(1);
    expect(await look(30.2)).toBe(0);
    const second = await shown();
    expect(second).toMatchObject({
      current_iteration: 2,
      current_iteration_start_date: told(30),
      end_date: null,
    });
    expect(asked(second)).toEqual(left(2));
    await eventually(async () => (await offered(tenant))[0]?.current_iteration === 2);
    const key = `survey-targeting-${draft.id}`;
    await eventually(
      async () =>
        (await flags(tenant, { [`$survey_responded/${draft.id}/2`]: true }))[key]?.enabled === false,
    );
    expect((await flags(tenant, { [`$survey_responded/${draft.id}/1`]: true }))[key].enabled).toBe(true);
    const fewer = await change(draft.id, { iteration_count: 1 }, tenant);
    expect([fewer.status, fewer.body.detail]).toEqual([
      400,
      'Cannot change survey recurrence to 1, should be at least 2',
    ]);
    expect(await look(60.1)).toBe(1);
    expect(await look(60.2)).toBe(0);
    const over = await shown();
    expect([over.end_date, over.internal_targeting_flag.active]).toEqual([expect.any(String), false]);
    const { rows } = await api.pool.query(
      `select detail ->> 'reason' as reason from activity_log where item_id = $1 and detail ->> 'reason' is not null
       order by id`,
      [draft.id],
    );
    expect(rows.map((row) => row.reason)).toEqual(['Its iteration 2 begins.', 'Its last iteration is over.']);
    const once = (await change(draft.id, { iteration_count: 0 }, tenant)).body;
    expect(once).toMatchObject({ iteration_start_dates: [], current_iteration: null });
    expect(asked(once)).toEqual([
      expect.objectContaining({ key: `$survey_dismissed/${draft.id}` }),
      expect.objectContaining({ key: `$survey_responded/${draft.id}` }),
    ]);
  });

  test.each([
    [{ type: 'banner' }, 'type', 'not a valid choice'],
    [
      { questions: [{ type: 'rating', question: 'Q', display: 'number', scale: 4 }] },
      'questions__0__scale',
      '',
    ],
    [{ questions: [{ type: 'single_choice', question: 'Q' }] }, 'questions__0__choices', 'required'],
    [{ questions: [{ type: 'open' }] }, 'questions__0__question', 'required'],
    [
      { questions: [{ ...open, branching: { type: 'specific_question', index: 1 } }] },
      'questions',
      'Question 0 leads to 1, and there are 1 questions, counted from 0.',
    ],
    [
      { questions: [{ ...open, branching: { type: 'response_based', responseValues: { a: 'end', b: 7 } } }] },
      'questions',
      'Question 0 leads to 7',
    ],
    [{ questions: [], start_date: NOW }, 'questions', 'at least one question'],
    [{ end_date: NOW }, 'end_date', 'has not begun'],
    [{ start_date: NOW, end_date: '2020-01-01T00:00:00Z' }, 'end_date', 'before the beginning'],
    [{ linked_flag_id: 2_000_000_000 }, 'linked_flag_id', 'does not exist'],
    [{ targeting_flag_filters: { groups: [{ rollout_percentage: 101 }] } }, 'filters', 'between 0 and 100'],
    [{ appearance: { text: 'x'.repeat(200_001) } }, 'questions', 'at most 200000 are allowed'],
    [{ responses_limit: 0 }, 'responses_limit', ''],
  ])('%j is refused at %s', async (body, attr, text) => {
    const refused = await ask('POST', 'surveys/', { name: 'S', type: 'popover', questions: [open], ...body });
    expect([refused.status, refused.body.attr]).toEqual([400, attr]);
    expect(refused.body.detail).toContain(text);
  });

  test('is started and ended by routes of their own, each once', async () => {
    const { id } = await create();
    const step = (name: string, of = id) => ask('POST', `surveys/${of}/${name}/`);
    const early = await step('stop');
    expect([early.status, early.body.detail]).toEqual([400, 'A survey that has not begun cannot end.']);
    const started = await step('launch');
    expect([started.status, started.body.internal_targeting_flag.active]).toEqual([200, true]);
    expect((await step('launch')).body.start_date).toBe(started.body.start_date);
    const ended = await step('stop');
    expect([ended.status, ended.body.internal_targeting_flag.active]).toEqual([200, false]);
    expect((await step('stop')).body.end_date).toBe(ended.body.end_date);
    expect((await step('launch')).body.attr).toBe('end_date');
    const archived = await create({ archived: true });
    for (const name of ['launch', 'stop']) {
      expect((await step(name, archived.id)).body.attr).toBe('archived');
    }
  });

  test('whose last iteration is over goes on only with more of them', async () => {
    const { id } = await create({ iteration_count: 2, iteration_frequency_days: 30 });
    await change(id, { start_date: daysAgo(100) });
    await change(id, { end_date: NOW });
    const refused = await change(id, { end_date: null });
    expect([refused.status, refused.body.attr]).toEqual([400, 'end_date']);
    const resumed = await change(id, { end_date: null, iteration_count: 5 });
    expect([resumed.status, resumed.body.current_iteration]).toEqual([200, 4]);
  });

  test('branches, and keeps what clients will know later', async () => {
    const questions = [
      { ...open, id: 'mine', later: { x: 1 }, branching: { type: 'specific_question', index: 1 } },
      { type: 'rating', question: 'R', display: 'emoji', scale: 5, branching: { type: 'end' } },
      { type: 'multiple_choice', question: 'M', choices: ['a', 'b'], hasOpenChoice: true },
    ];
    const made = await create({ questions });
    expect(made.questions).toMatchObject(questions);
    expect(new Set(made.questions.map((one: { id: string }) => one.id)).size).toBe(3);
    const renamed = await change(made.id, { name: 'Renamed' });
    expect(renamed.body.questions).toEqual(made.questions);
  });

  test('is listed, searched, and seen by nobody else', async () => {
    const tenant = await api.createTenant('Lists');
    const made = await create({ name: 'Find me', type: 'widget' }, tenant);
    await create({ archived: true }, tenant);
    for (const [query, count] of [
      ['', 2],
      ['?search=find', 1],
      ['?archived=true', 1],
      ['?type=widget', 1],
      ['?type=api', 0],
      [`?ids=${made.id},%20${crypto.randomUUID()},none`, 1],
      ['?ids=none', 0],
    ] as const) {
      expect((await ask('GET', `surveys/${query}`, undefined, tenant)).body.count).toBe(count);
    }
    for (const method of ['GET', 'PATCH', 'DELETE'] as const) {
      expect((await ask(method, `surveys/${made.id}/`, {}, bert)).status).toBe(404);
    }
    const { rows } = await api.pool.query(
      "select activity from activity_log where scope = 'Survey' and item_id = $1",
      [made.id],
    );
    expect(rows).toEqual([{ activity: 'created' }]);
    expect((await api.app.inject({ url: '/api/surveys/?token=phc_unknown' })).statusCode).toBe(401);
  });
});

describe('the surveys of a project', () => {
  const store = (tenant: Tenant, count: number, bytes: number, flagId: number | null = null) =>
    api.pool.query(
      `insert into surveys (project_id, id, name, type, questions, linked_flag_id, created_at)
       select $1, gen_random_uuid(), 's' || n, 'popover', json_build_array(json_build_object('type', 'open', 'question',
         repeat('x', $3))), $4, now() - n * interval '1 second' from generate_series(1, $2::int) n`,
      [tenant.projectId, count, bytes, flagId],
    );

  test('have a bounded size together', async () => {
    const tenant = await api.createTenant('Asker');
    const draft = await create({}, tenant);
    await store(tenant, 88, 190_000);
    const questions = Array.from({ length: 10 }, () => ({ type: 'open', question: 'x'.repeat(9_000) }));
    const refused = await ask('POST', 'surveys/', { name: 'S', type: 'popover', questions }, tenant);
    expect([refused.status, refused.body.code, refused.body.detail]).toEqual([
      400,
      'limit',
      expect.stringMatching(/^The surveys of the project would have \d+ bytes; 16777216 are allowed/),
    ]);
    expect((await change(draft.id, { questions }, tenant)).body.code).toBe('limit');
    // What does not grow can be changed.
    expect((await change(draft.id, { name: 'Other' }, tenant)).status).toBe(200);
  });

  test('are listed as far as an answer goes, also when they show the same long flag', async () => {
    const tenant = await api.createTenant('Lister');
    const filters = { groups: [{ properties: [{ key: 'a', type: 'person', value: 'x'.repeat(400_000) }] }] };
    const { rows } = await api.pool.query(
      `insert into feature_flags (project_id, key, filters) values ($1, 'long', $2) returning id`,
      [tenant.projectId, JSON.stringify(filters)],
    );
    await store(tenant, 45, 10, rows[0].id);
    const first = await ask('GET', 'surveys/?limit=1000', undefined, tenant);
    expect([first.body.count, first.body.results.length]).toEqual([45, 41]);
    const rest = await ask('GET', 'surveys/?limit=1000&offset=41', undefined, tenant);
    expect(rest.body.results.map((one: { name: string }) => one.name)).toEqual(['s42', 's43', 's44', 's45']);
  });
});

test('a flag is linked by keys that may read flags, and by no others', async () => {
  const flag = (await ask('POST', 'feature_flags/', { key: 'linked-by-scope' })).body;
  const url = `/api/projects/${anna.projectId}/surveys/`;
  const { value } = await api.createKey(anna, { scopes: ['survey:write'] });
  const body = { name: 'S', type: 'popover', questions: [open] };
  const made = await api.request(value, 'POST', url, body);
  expect(made.statusCode).toBe(201);
  const own = `${url}${made.json().id}/`;
  const linked = { ...body, linked_flag_id: flag.id };
  for (const refused of [
    await api.request(value, 'POST', url, linked),
    await api.request(value, 'PATCH', own, linked),
    await api.request(value, 'PUT', own, linked),
  ]) {
    expect([refused.statusCode, refused.json().detail]).toEqual([
      403,
      "API key missing required scope 'feature_flag:read'",
    ]);
  }
  const both = await api.createKey(anna, { scopes: ['survey:write', 'feature_flag:read'] });
  expect((await api.request(both.value, 'PATCH', own, linked)).json().linked_flag.key).toBe(
    'linked-by-scope',
  );
  // What is linked already may be sent back, and taken away.
  expect((await api.request(value, 'PUT', own, linked)).statusCode).toBe(200);
  expect((await api.request(value, 'PATCH', own, { linked_flag_id: null })).statusCode).toBe(200);
});
