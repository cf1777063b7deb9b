import { describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant, tenantsForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = apiForFile();
const { anna, bert } = tenantsForFile(api, 'anna', 'bert');

async function ask(method: 'POST' | 'PATCH', rest: string, body: object, tenant = anna) {
  const answer = await api.request(tenant, method, `/api/projects/${tenant.projectId}/${rest}`, body);
  return { status: answer.statusCode, body: answer.json() };
}
const open = { type: 'open', question: 'Why?' };
const link = { type: 'link', question: 'More?' };
const choice = { type: 'single_choice', question: 'Which?', choices: ['a', 'b'] };
const NOW = new Date().toISOString();
const survey = (fields: object) => ({ name: 'S', type: 'popover', questions: [open], ...fields });
async function create(fields: object = {}, tenant = anna) {
  const made = await ask('POST', 'surveys/', survey(fields), tenant);
  expect([made.status, made.body]).toEqual([201, expect.anything()]);
  return made.body;
}
const change = (id: string, body: object) => ask('PATCH', `surveys/${id}/`, body);
async function offered(tenant: Tenant): Promise<Record<string, unknown>[]> {
  const answer = await api.app.inject({ url: `/api/surveys/?token=${tenant.projectToken}` });
  expect(answer.statusCode).toBe(200);
  return answer.json().surveys;
}

describe('what pages show of a survey', () => {
  test.each<[fields: object, attr: string, text: string]>([
    [{ questions: [{ ...link, link: 'javascript:alert(1)' }] }, 'questions', 'schemes: [https, mailto]'],
    [{ questions: [open, { ...link, link: 'https://#.com' }] }, 'questions', 'Question 1: Invalid HTTPS URL'],
    [{ questions: [{ ...link, link: 'mailto:nobody' }] }, 'questions', 'Invalid mailto link'],
    [
      { questions: [{ ...link, link: 'https://a.de', translations: { es: { link: 'data:text/html,a' } } }] },
      'questions',
      'schemes: [https, mailto]',
    ],
    [
      { questions: [{ ...open, description: 'See <img src="/x" onerror="alert(1)">' }] },
      'questions',
      'Question 0: description has onerror of <img>, which a survey may not have.',
    ],
    [
      { questions: [{ ...open, translations: { es: { description: '<script>alert(1)</script>' } } }] },
      'questions',
      'description has <script>',
    ],
    [
      {
        questions: [
          {
            ...{ ...open, descriptionContentType: 'text' },
            translations: {
              es: { description: '<script>alert(1)</script>', descriptionContentType: 'html' },
            },
          },
        ],
      },
      'questions',
      'description has <script>',
    ],
    [
      { appearance: { thankYouMessageDescription: '<a href="javascript:alert(1)">a</a>' } },
      'appearance',
      'thankYouMessageDescription has href of <a>',
    ],
    [
      { questions: [{ ...choice, translations: { es: { choices: ['x'] } } }] },
      'questions',
      'A translation has 1 choices, and the question has 2 choices',
    ],
    [
      { appearance: { shuffleQuestions: true }, questions: [{ ...open, branching: { type: 'end' } }] },
      'appearance',
      'Question shuffling and question branching cannot be used together',
    ],
    [{ conditions: { linkedFlagVariant: 'a' } }, 'conditions', 'when a linked_flag_id is specified'],
  ])('%j is refused at %s', async (fields, attr, text) => {
    const refused = await ask('POST', 'surveys/', survey(fields));
    expect([refused.status, refused.body.attr]).toEqual([400, attr]);
    expect(refused.body.detail).toContain(text);
  });

  test('may be HTML that is no program, and links', async () => {
    const questions = [
      {
        ...open,
        description: '<p style="color: red">A <b>bold</b> word, 1 < 2</p>',
        descriptionContentType: 'html',
      },
      { ...open, description: '<script> stays a text', descriptionContentType: 'text' },
      { ...link, link: 'https://example.com/a?b=c', translations: { es: { question: '¿Más?', link: '' } } },
      { ...link, link: 'mailto:ann@example.com?subject=Hello' },
    ];
    const made = await create({ questions, appearance: { thankYouMessageDescription: '<i>Thanks</i>' } });
    expect(made.questions).toMatchObject(questions);
    // What was stored before such texts were refused can be started, ended and renamed.
    await api.pool.query('update surveys set questions = $2 where id = $1', [
      made.id,
      JSON.stringify([{ ...link, id: 'q', link: 'http://example.com' }]),
    ]);
    expect((await change(made.id, { start_date: NOW })).status).toBe(200);
    const bad = { questions: [{ ...link, link: 'http://example.com' }] };
    expect((await change(made.id, bad)).body.attr).toBe('questions');
  });
});

describe('a survey', () => {
  test('is shown for a variant that its flag has', async () => {
    const variants = ['control', 'treatment'].map((key) => ({ key, rollout_percentage: 50 }));
    const filters = { groups: [{ properties: [], rollout_percentage: 100 }], multivariate: { variants } };
    const { body: flag } = await ask('POST', 'feature_flags/', { key: 'with-variants', filters });
    const { body: plain } = await ask('POST', 'feature_flags/', { key: 'without-variants' });
    for (const linkedFlagVariant of ['control', 'any', null]) {
      const made = await create({ linked_flag_id: flag.id, conditions: { linkedFlagVariant } });
      expect(made.conditions).toEqual({ linkedFlagVariant });
    }
    const made = await create();
    const refusal = async (body: object) => {
      const { status, body: refused } = await change(made.id, body);
      return [status, refused.attr, refused.detail];
    };
    const conditions = { linkedFlagVariant: 'other' };
    expect(await refusal({ linked_flag_id: flag.id, conditions })).toEqual([
      ...[400, 'conditions'],
      "Feature flag variant 'other' does not exist. Available variants: control, treatment",
    ]);
    expect(await refusal({ linked_flag_id: plain.id, conditions })).toEqual([
      ...[400, 'conditions'],
      "Feature flag variant 'other' specified but the linked feature flag has no variants",
    ]);
    const treatment = { linked_flag_id: flag.id, conditions: { linkedFlagVariant: 'treatment' } };
    expect((await change(made.id, treatment)).status).toBe(200);
    expect((await refusal({ linked_flag_id: plain.id }))[0]).toBe(400);
    expect((await change(made.id, { linked_flag_id: null })).status).toBe(200);
  });

  test('that waits for actions tells clients what they are', async () => {
    const tenant = await api.createTenant('Actions');
    const action = async (body: object) => (await ask('POST', 'actions/', body, tenant)).body;
    const paid = await action({
      name: 'paid',
      steps: [{ event: 'order paid' }, { event: '$pageview', url: '/done' }],
    });
    const gone = await action({ name: 'gone', steps: [{ event: 'x' }] });
    await ask('PATCH', `actions/${gone.id}/`, { deleted: true }, tenant);
    const values = [{ id: paid.id, name: 'its name of then' }, { id: gone.id, name: 'gone' }, { id: 'none' }];
    const conditions = { url: '/shop', actions: { values } };
    const made = await create({ conditions, start_date: NOW }, tenant);
    expect(made.conditions).toEqual(conditions);
    const told = async () => (await offered(tenant))[0]?.conditions;
    await eventually(async () => (await told()) !== undefined);
    expect(await told()).toEqual({
      url: '/shop',
      actions: {
        values: [
          {
            ...{ id: paid.id, name: 'paid' },
            steps: [
              expect.objectContaining({ event: 'order paid' }),
              expect.objectContaining({ event: '$pageview', url: '/done' }),
            ],
          },
          { id: gone.id, name: 'gone' },
          { id: 'none' },
        ],
      },
    });
    // Steps of others are told to nobody.
    const foreign = await create(
      { conditions: { actions: { values: [{ id: paid.id, name: 'paid' }] } }, start_date: NOW },
      bert,
    );
    await eventually(async () => (await offered(bert)).some((one) => one.id === foreign.id));
    const theirs = (await offered(bert)).find((one) => one.id === foreign.id);
    expect(theirs?.conditions).toEqual({ actions: { values: [{ id: paid.id, name: 'paid' }] } });
  });
});

test('actions are named by keys that may read actions, and by no others', async () => {
  const { body: action } = await ask('POST', 'actions/', { name: 'by scope', steps: [{ event: 'x' }] });
  const url = `/api/projects/${anna.projectId}/surveys/`;
  const { value } = await api.createKey(anna, { scopes: ['survey:write'] });
  const conditions = { actions: { values: [{ id: action.id, name: 'by scope' }] } };
  const body = { name: 'S', type: 'popover', questions: [open], conditions };
  const refused = await api.request(value, 'POST', url, body);
  expect([refused.statusCode, refused.json().detail]).toEqual([403, expect.stringContaining('action:read')]);
  const wide = await api.createKey(anna, { scopes: ['survey:write', 'action:read'] });
  const made = (await api.request(wide.value, 'POST', url, body)).json();
  // What is there already may be sent back.
  const kept = await api.request(value, 'PATCH', `${url}${made.id}/`, {
    conditions: { ...conditions, url: '/' },
  });
  expect(kept.statusCode).toBe(200);
});
