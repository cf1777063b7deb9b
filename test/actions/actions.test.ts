import { readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { stepsOf, versionsOf } from '../../actions/reads/steps-of.ts';
import { lockNamesake } from '../../actions/rows/actions.ts';
import { LOCK_KINDS } from '../../actions/rows/locks.ts';
import { transaction } from '../../db/pool.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { run } from '../../hog/vm/index.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { queriesOf } from '../support/query-log.ts';
import { refusals } from '../support/refusals.ts';

const api = apiForFile();
let anna: Tenant;
let ben: Tenant;
beforeAll(async () => {
  anna = await api.createTenant('Anna');
  ben = await api.createTenant('Ben');
});

const at = (tenant: Tenant, rest = '') => `/api/projects/${tenant.projectId}/actions/${rest}`;
const ask = (method: string, rest: string, body?: unknown, tenant = anna) =>
  api.request(tenant, method, at(tenant, rest), body);

interface Shown {
  id: number;
  name: string | null;
  bytecode: Bytecode;
  last_calculated_at: string;
  [field: string]: unknown;
}

async function create(body: object, tenant = anna): Promise<Shown> {
  const answer = await ask('POST', '', body, tenant);
  expect([answer.statusCode, answer.statusCode === 201 || answer.body]).toEqual([201, true]);
  return answer.json();
}

const NOTHING = {
  event: null,
  properties: null,
  selector: null,
  tag_name: null,
  text: null,
  text_matching: null,
  href: null,
  href_matching: null,
  url: null,
  url_matching: null,
};

describe('an action', () => {
  test('is created with defaults, and shown the same way everywhere', async () => {
    const made = await create({ name: ' Signed up ', steps: [{ event: 'signup' }] });
    expect(made).toEqual({
      id: expect.any(Number),
      team_id: anna.projectId,
      name: 'Signed up',
      description: '',
      tags: [],
      post_to_slack: false,
      slack_message_format: '',
      steps: [{ ...NOTHING, event: 'signup' }],
      created_at: expect.stringMatching(/Z$/),
      created_by: expect.objectContaining({ id: anna.userId, uuid: anna.userUuid, email: anna.email }),
      updated_at: expect.stringMatching(/Z$/),
      deleted: false,
      is_calculating: false,
      last_calculated_at: expect.stringMatching(/Z$/),
      is_action: true,
      bytecode: ['_H', 1, 32, 'signup', 32, 'event', 1, 1, 11],
      bytecode_error: null,
      pinned_at: null,
      creation_context: null,
    });
    expect((await ask('GET', `${made.id}/`)).json()).toEqual(made);
    const list = await api.request(anna, 'GET', `/api/environments/${anna.projectId}/actions/?limit=1`);
    expect(list.json()).toMatchObject({ results: [made] });
  });

  test('needs nothing, not even a name or a body', async () => {
    const [one, other] = [await create({}), await create({ name: '' })];
    expect([one.name, other.name, one.bytecode]).toEqual([null, '', ['_H', 1, 29]]);
    const bare = await api.request(anna, 'POST', at(anna), undefined);
    expect(bare.statusCode).toBe(201);
  });

  test('keeps tags in lower case, each once, and ignores what it does not know', async () => {
    const body = {
      tags: [' Growth', 'growth', 'WEB', ' '],
      id: 7,
      _create_in_folder: 'x',
      selector_regex: 1,
    };
    const made = await create({ ...body, steps: [{ event: 'a', selector_regex: 'x', unknown: 1 }] });
    expect(made.tags).toEqual(['growth', 'web']);
    expect(made).not.toHaveProperty('_create_in_folder');
    expect(made.steps).toEqual([{ ...NOTHING, event: 'a' }]);
  });

  test.each([
    [true, expect.stringMatching(/Z$/)],
    ['2026-01-02T03:04:05+01:00', expect.stringMatching(/^2026-01-02T02:04:05/)],
    [false, null],
    ['', null],
    [null, null],
  ])('is pinned by %j', async (pinned_at, shown) => {
    const made = await create({ pinned_at });
    expect(made.pinned_at).toEqual(shown);
    const changed = await ask('PATCH', `${made.id}/`, { pinned_at: false });
    expect(changed.json()).toMatchObject({ pinned_at: null });
  });

  test('is changed by PATCH and PUT; what they leave out stays', async () => {
    const made = await create({ name: 'Bought', description: 'paid', steps: [{ event: 'buy' }] });
    const patched = await ask('PATCH', `${made.id}/`, { steps: [{ event: 'paid', url: '/shop' }] });
    expect(patched.statusCode).toBe(200);
    expect(patched.json()).toMatchObject({
      name: 'Bought',
      description: 'paid',
      steps: [{ ...NOTHING, event: 'paid', url: '/shop' }],
    });
    expect(patched.json().bytecode).not.toEqual(made.bytecode);
    const put = await ask('PUT', `${made.id}/`, { name: 'Paid' });
    expect(put.json()).toMatchObject({
      name: 'Paid',
      description: 'paid',
      bytecode: patched.json().bytecode,
    });
    expect(put.json().last_calculated_at).toBe(patched.json().last_calculated_at);
  });

  test('is deleted by a PATCH alone, and brought back by a PATCH', async () => {
    const made = await create({ name: 'Left', steps: [{ event: 'leave' }] });
    const url = `${made.id}/`;
    const forbidden = await ask('DELETE', url);
    expect([forbidden.statusCode, forbidden.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS, PATCH, PUT']);
    expect((await ask('PATCH', url, { deleted: true })).json()).toMatchObject({ deleted: true });
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { name: 'x' }],
      ['PATCH', { deleted: true }],
      ['PUT', { deleted: false }],
    ] as const) {
      const answer = await ask(method, url, body);
      expect([method, answer.statusCode, answer.json()]).toEqual([method, 404, refusals.notFound()]);
    }
    const listed = (await ask('GET', '?limit=1000')).json().results as Shown[];
    expect(listed.map((one) => one.id)).not.toContain(made.id);
    const back = await ask('PATCH', url, { deleted: false });
    expect([back.statusCode, back.json().deleted, back.json().bytecode]).toEqual([200, false, made.bytecode]);
    expect((await ask('GET', url)).statusCode).toBe(200);
  });

  test('has a name of its own among those that are not deleted', async () => {
    const taken = await create({ name: 'Taken' });
    const refused = (id: number) =>
      refusals.field('name', 'unique', `This project already has an action with this name, ID ${id}`);
    const again = await ask('POST', '', { name: 'Taken' });
    expect([again.statusCode, again.json()]).toEqual([400, refused(taken.id)]);
    const other = await create({ name: 'Other' });
    expect((await ask('PATCH', `${other.id}/`, { name: 'Taken' })).json()).toEqual(refused(taken.id));
    expect((await ask('PATCH', `${taken.id}/`, { name: 'Taken' })).statusCode).toBe(200);
    await create({ name: 'Taken' }, ben);
    await ask('PATCH', `${taken.id}/`, { deleted: true });
    expect((await ask('PATCH', `${other.id}/`, { name: 'Taken' })).statusCode).toBe(200);
    expect((await ask('PATCH', `${taken.id}/`, { deleted: false })).json()).toEqual(refused(other.id));
  });

  test('gets a name once, however many ask at the same time', async () => {
    let answer: ReturnType<typeof ask> | undefined;
    let isAnswered = false;
    await transaction(api.pool, async (client) => {
      // Somebody else has asked for the name and not saved yet.
      expect(await lockNamesake(client, anna.projectId, 'Race', null)).toBeUndefined();
      answer = ask('POST', '', { name: 'Race' }).finally(() => {
        isAnswered = true;
      });
      await eventually(async () => {
        const { rows } = await api.pool.query(
          `select from pg_locks where locktype = 'advisory' and classid = $1 and not granted`,
          [LOCK_KINDS.actionNames],
        );
        return isAnswered || rows.length > 0;
      });
      await client.query(
        `insert into actions (project_id, name, steps, bytecode) values ($1, 'Race', '[]', '[]')`,
        [anna.projectId],
      );
    });
    expect((await answer)?.json()).toMatchObject({ attr: 'name', code: 'unique' });
  });

  test('is written into the activity log', async () => {
    const olga = await api.createTenant('Olga');
    const made = await create({ name: 'Logged' }, olga);
    await ask('PATCH', `${made.id}/`, { name: 'Renamed' }, olga);
    await ask('PATCH', `${made.id}/`, { deleted: true }, olga);
    await ask('PATCH', `${made.id}/`, { deleted: false }, olga);
    const log = await api.request(olga, 'GET', `/api/projects/${olga.projectId}/activity_log/`);
    const entries = (log.json().results as Record<string, unknown>[]).filter((one) => one.scope === 'Action');
    expect(entries.map(({ activity, item_id, detail }) => [activity, item_id, detail]).reverse()).toEqual([
      ['created', String(made.id), { name: 'Logged' }],
      [
        'updated',
        String(made.id),
        { name: 'Renamed', changes: [{ field: 'name', before: 'Logged', after: 'Renamed' }] },
      ],
      [
        'deleted',
        String(made.id),
        { name: 'Renamed', changes: [{ field: 'deleted', before: false, after: true }] },
      ],
      [
        'updated',
        String(made.id),
        { name: 'Renamed', changes: [{ field: 'deleted', before: true, after: false }] },
      ],
    ]);
  });
});

describe('a body that is wrong', () => {
  const invalid = (attr: string, detail: string | RegExp, code = 'invalid_input') => ({ attr, detail, code });
  const long = 'x'.repeat(10_001);
  const pattern = '(a{50}b{50})';
  test.each<[string, unknown, ReturnType<typeof invalid>]>([
    ['a name', { name: 5 }, invalid('name', 'Not a valid string.')],
    [
      'a long name',
      { name: 'x'.repeat(401) },
      invalid('name', 'Ensure this field has no more than 400 characters.', 'max_length'),
    ],
    ['no description', { description: null }, invalid('description', 'This field may not be null.', 'null')],
    ['tags', { tags: 'a' }, invalid('tags', 'Expected a list of items but got type "str".', 'not_a_list')],
    ['a tag', { tags: ['a', 1] }, invalid('tags__1', 'Not a valid string.')],
    ['post_to_slack', { post_to_slack: 'x' }, invalid('post_to_slack', 'Must be a valid boolean.')],
    ['deleted', { deleted: null }, invalid('deleted', 'This field may not be null.', 'null')],
    ['pinned_at', { pinned_at: 'soon' }, invalid('pinned_at', /^Datetime has wrong format/)],
    ['pinned_at as a number', { pinned_at: 5 }, invalid('pinned_at', /^Datetime has wrong format/)],
    ['steps', { steps: {} }, invalid('steps', 'Expected a list of items but got type "dict".', 'not_a_list')],
    ['no steps', { steps: null }, invalid('steps', 'This field may not be null.', 'null')],
    [
      'a step',
      { steps: ['x'] },
      invalid('steps__0', 'Expected a dictionary of items but got type "str".', 'not_a_dict'),
    ],
    [
      'too many steps',
      { steps: Array.from({ length: 101 }, () => ({ event: 'a' })) },
      invalid('steps', 'Ensure this field has no more than 100 elements.', 'max_length'),
    ],
    [
      'large steps',
      { steps: Array.from({ length: 11 }, () => ({ url: 'x'.repeat(10_000) })) },
      invalid(
        'steps',
        /^The steps of an action may have 100000 bytes, and these have 11\d{4}\.$/,
        'max_length',
      ),
    ],
    ['an event', { steps: [{ event: 5 }] }, invalid('steps__0__event', 'Not a valid string.')],
    [
      'an empty event',
      { steps: [{ event: '' }] },
      invalid('steps__0__event', 'This field may not be blank.', 'blank'),
    ],
    [
      'a long url',
      { steps: [{ url: long }] },
      invalid('steps__0__url', 'Ensure this field has no more than 10000 characters.', 'max_length'),
    ],
    [
      'url_matching',
      { steps: [{ url: 'a', url_matching: 'starts' }] },
      invalid('steps__0__url_matching', '"starts" is not a valid choice.', 'invalid_choice'),
    ],
    [
      'text_matching',
      { steps: [{}, { text_matching: '' }] },
      invalid('steps__1__text_matching', '"" is not a valid choice.', 'invalid_choice'),
    ],
    [
      'href_matching',
      { steps: [{ href_matching: 5 }] },
      invalid('steps__0__href_matching', '5 is not a valid choice.', 'invalid_choice'),
    ],
    [
      'a pattern of a url',
      { steps: [{ event: 'a' }, { url: '(', url_matching: 'regex' }] },
      invalid('steps__1__url', /^Invalid regular expression: /),
    ],
    [
      'a pattern of a text that the event makes no use of',
      { steps: [{ event: 'a', text: '[', text_matching: 'regex' }] },
      invalid('steps__0__text', /^Invalid regular expression: /),
    ],
    [
      'a pattern of a link',
      { steps: [{ event: '$autocapture', href: 'a{1,99999}', href_matching: 'regex' }] },
      invalid('steps__0__href', /^A regular expression may have a size of at most 10,000, and this one has /),
    ],
    [
      'patterns that are too large together',
      { steps: Array.from({ length: 3 }, () => ({ url: pattern.repeat(80), url_matching: 'regex' })) },
      invalid('steps__2__url', /^All regular expressions together may have a size of at most 20,000/),
    ],
    [
      'a selector',
      { steps: [{ event: '$autocapture', selector: 'div >' }] },
      invalid('steps__0__selector', 'The selector "div >" ends with ">".'),
    ],
    [
      'a selector without autocapture',
      { steps: [{ selector: ':hover' }] },
      invalid('steps__0__selector', 'The selector ":hover" cannot be read.'),
    ],
    [
      'a tag name',
      { steps: [{ tag_name: 'a b' }] },
      invalid('steps__0__tag_name', '"a b" is not a tag name.'),
    ],
    [
      'properties',
      { steps: [{ properties: {} }] },
      invalid('steps__0__properties', 'Expected a list of items but got type "dict".', 'not_a_list'),
    ],
    [
      'a property',
      { steps: [{ properties: ['x'] }] },
      invalid('steps__0__properties__0', 'Expected a dictionary of items but got type "str".', 'not_a_dict'),
    ],
    [
      'a property without a key',
      { steps: [{ properties: [{ type: 'event', value: 'x' }] }] },
      invalid('steps__0__properties__0__key', 'This field is required.'),
    ],
    [
      'a property without a value',
      { steps: [{ properties: [{ key: 'plan', type: 'event' }] }] },
      invalid('steps__0__properties__0__value', 'This field is required.'),
    ],
    [
      'an operator',
      { steps: [{ properties: [{ key: 'plan', operator: 'near', value: 1 }] }] },
      invalid('steps__0__properties__0__operator', 'Unknown operator "near".'),
    ],
    [
      'a type',
      { steps: [{ properties: [{ key: 'plan', type: 'moon', value: 1 }] }] },
      invalid('steps__0__properties__0__type', 'Unknown property type "moon".'),
    ],
    [
      'a cohort',
      { steps: [{ event: 'a' }, { properties: [{ key: 'id', type: 'cohort', value: 3 }] }] },
      invalid(
        'steps__1__properties__0',
        "Can't use cohorts in real-time filters. Please inline the relevant expressions (cohort id=3).",
      ),
    ],
    [
      'a flag',
      {
        steps: [{ properties: [{ key: 'beta', type: 'flag', value: true, operator: 'flag_evaluates_to' }] }],
      },
      invalid('steps__0__properties__0', 'Conditions on flags work in flags only.'),
    ],
    [
      'a HogQL expression',
      { steps: [{ properties: [{ type: 'hogql', key: 'event = ' }] }] },
      invalid('steps__0__properties__0__key', /line 1/),
    ],
    [
      'a HogQL expression with a cohort',
      { steps: [{ properties: [{ type: 'hogql', key: 'person_id in cohort 5' }] }] },
      invalid('steps__0__properties__0__key', /^Can't use cohorts in real-time filters\..*cohort id=5/),
    ],
    [
      'a HogQL expression with a query',
      { steps: [{ properties: [{ type: 'hogql', key: 'event in (select event from events)' }] }] },
      invalid('steps__0__properties__0__key', /./),
    ],
    [
      'too many conditions',
      { steps: Array.from({ length: 2 }, () => ({ properties: Array(501).fill({ key: 'a', value: 1 }) })) },
      invalid('steps__1__properties__499', 'More than 1000 conditions in one filter.'),
    ],
  ])('%s', async (_what, body, { attr, detail, code }) => {
    const answer = await ask('POST', '', body);
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      {
        type: 'validation_error',
        code,
        attr,
        detail: typeof detail === 'string' ? detail : expect.stringMatching(detail),
      },
    ]);
  });

  test('changes nothing of an action', async () => {
    const made = await create({ name: 'Kept', steps: [{ event: 'a' }] });
    const refused = await ask('PATCH', `${made.id}/`, { name: 'New', steps: [{ selector: '(' }] });
    expect(refused.statusCode).toBe(400);
    expect((await ask('GET', `${made.id}/`)).json()).toEqual(made);
  });

  test('is not read for an action that does not exist', async () => {
    const answer = await ask('PATCH', '2147483647/', { name: 5 });
    expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound()]);
  });

  test('nor are ids that no action can have', async () => {
    for (const id of ['0', '-1', '1.5', 'x', '2147483648', '99999999999999999999', '%00', '1e3']) {
      const answer = await ask('GET', `${id}/`);
      expect([id, answer.statusCode, answer.json()]).toEqual([id, 404, refusals.notFound()]);
    }
  });

  test('ends the creation of actions when a project has too many', async () => {
    const crowd = await api.createTenant('Crowd');
    await api.pool.query(
      `insert into actions (project_id, name, steps, bytecode) select $1, 'n' || i, '[]', '[]'
       from generate_series(1, 1000) i`,
      [crowd.projectId],
    );
    const refused = await ask('POST', '', { name: 'one more' }, crowd);
    expect([refused.statusCode, refused.json().detail]).toEqual([
      400,
      'This project already has 1000 actions, the most that it may have. Delete one before you create another.',
    ]);
    const list = (await ask('GET', '?limit=3', undefined, crowd)).json();
    expect([list.count, list.results.length, list.next]).toEqual([
      1000,
      3,
      `https://sluice.test${at(crowd)}?limit=3&offset=3`,
    ]);
  });
});

describe('what an action matches', () => {
  const matches = (bytecode: Bytecode, event: object) => {
    const outcome = run(bytecode, { globals: { properties: {}, elements_chain: '', ...event } });
    expect(outcome.status).toBe('finished');
    return outcome.status === 'finished' && outcome.result;
  };
  const click = {
    event: '$autocapture',
    elements_chain: 'a.big:href="/pay"nth-child="1"text="Pay now";div:attr_id="top"',
    elements_chain_href: '/pay',
    elements_chain_texts: ['Pay now'],
    properties: { $current_url: 'https://shop.example/cart?x=1', plan: 'gold' },
  };

  test.each<[string, object, boolean]>([
    ['its event', { event: '$autocapture' }, true],
    ['another event', { event: 'paid' }, false],
    ['any event', {}, true],
    ['the url contains', { url: 'shop.example' }, true],
    ['the url is exactly', { url: 'shop.example', url_matching: 'exact' }, false],
    ['the url by a pattern', { url: '^https://[a-z.]+/cart', url_matching: 'regex' }, true],
    ['the selector', { event: '$autocapture', selector: '#top > a.big' }, true],
    ['another selector', { event: '$autocapture', selector: 'form > a' }, false],
    ['the tag', { event: '$autocapture', tag_name: 'a' }, true],
    ['the text', { event: '$autocapture', text: 'Pay now' }, true],
    ['a part of the text', { event: '$autocapture', text: 'PAY', text_matching: 'contains' }, true],
    ['the link', { event: '$autocapture', href: '/p', href_matching: 'contains' }, true],
    ['another link', { event: '$autocapture', href: '/p' }, false],
    ['a property', { properties: [{ key: 'plan', value: 'gold', type: 'event' }] }, true],
    ['another property', { properties: [{ key: 'plan', value: 'free', type: 'event' }] }, false],
    ['HogQL', { properties: [{ type: 'hogql', key: "properties.plan = 'gold'" }] }, true],
    ['HogQL that is not true', { properties: [{ type: 'hogql', key: 'length(event) > 99' }] }, false],
  ])('%s', async (_what, step, expected) => {
    const { bytecode } = await create({ steps: [step] });
    expect(matches(bytecode, click)).toBe(expected);
  });

  test('any of its steps, and without steps each event', async () => {
    const { bytecode } = await create({ steps: [{ event: 'a' }, { event: 'b' }] });
    expect(['a', 'b', 'c'].map((event) => matches(bytecode, { event }))).toEqual([true, true, false]);
    expect(matches((await create({ steps: [] })).bytecode, click)).toBe(true);
  });
});

describe('other products', () => {
  const ids = (map: Map<number, unknown>) => [...map.keys()].sort();

  test('get the steps of the actions of a project that are not deleted', async () => {
    const [one, gone] = [
      await create({ steps: [{ event: 'a', properties: [{ key: 'k', value: 'v' }] }] }),
      await create({}),
    ];
    const foreign = await create({ steps: [{ event: 'x' }] }, ben);
    await ask('PATCH', `${gone.id}/`, { deleted: true });
    const wanted = [one.id, gone.id, foreign.id, 2 ** 40, 0, -1, 1.5];
    const steps = await stepsOf(api.pool, anna.projectId, wanted);
    expect(ids(steps)).toEqual([one.id]);
    expect(steps.get(one.id)).toMatchObject([
      { event: 'a', properties: { values: [{ key: 'k', value: 'v' }] } },
    ]);
    expect(ids(await versionsOf(api.pool, anna.projectId, wanted))).toEqual([one.id]);
  });

  test('learn by the version that what an action matches has changed, and only then', async () => {
    const { id } = await create({
      name: 'Versioned',
      steps: [{ event: 'a', properties: [{ value: 1, key: 'k' }] }],
    });
    const version = async () => (await versionsOf(api.pool, anna.projectId, [id])).get(id);
    expect(await version()).toBe(1);
    await ask('PATCH', `${id}/`, { name: 'Other name', deleted: false });
    await ask('PATCH', `${id}/`, { steps: [{ event: 'a', properties: [{ key: 'k', value: 1 }] }] });
    expect(await version()).toBe(1);
    await ask('PATCH', `${id}/`, { steps: [{ event: 'b' }] });
    expect(await version()).toBe(2);
    await ask('PATCH', `${id}/`, { deleted: true });
    expect(await version()).toBeUndefined();
    await ask('PATCH', `${id}/`, { deleted: false });
    expect(await version()).toBe(4);
  });
});

test('projects that become one may have actions of the same name', async () => {
  const olga = await api.createTenant('Olga');
  const made = await api.request(olga, 'POST', '/api/projects/', { name: 'target' });
  const target = { ...olga, projectId: made.json().id };
  const ids = [(await create({ name: 'Same' }, olga)).id, (await create({ name: 'Same' }, target)).id];
  const url = `/api/organizations/${olga.organizationId}/environments_rollback/`;
  const moved = await api.request(olga, 'POST', url, { [olga.projectId]: target.projectId });
  expect(moved.statusCode).toBe(200);
  const list = (await ask('GET', '', undefined, target)).json().results as Shown[];
  expect(list.map((one) => one.id).sort()).toEqual(ids.sort());
});

describe('actions of another project', () => {
  test('are like actions that do not exist: the answer, and the queries', async () => {
    const { id } = await create({ name: 'Of Ben', steps: [{ event: 'secret' }] }, ben);
    const observe = async (method: string, of: number) => {
      const body = method === 'GET' ? undefined : { name: 'taken over', deleted: false };
      const { result, queries } = await queriesOf(() => ask(method, `${of}/`, body));
      return {
        status: result.statusCode,
        body: result.json(),
        queries: queries.map((one) => one.replace(String(of), '')),
      };
    };
    for (const method of ['GET', 'PUT', 'PATCH']) {
      const theirs = await observe(method, id);
      expect(theirs).toEqual(await observe(method, 2_147_483_000));
      expect([theirs.status, theirs.body]).toEqual([404, refusals.notFound()]);
    }
    expect((await ask('GET', '?limit=1000')).body).not.toContain('Of Ben');
    const answer = await api.request(anna, 'GET', at(ben));
    expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound('Project not found.')]);
    expect((await ask('GET', `${id}/`, undefined, ben)).json()).toMatchObject({ name: 'Of Ben' });
  });

  test('and of this one need the scope', async () => {
    const [reader, none] = [
      await api.createKey(anna, { scopes: ['action:read'] }),
      await api.createKey(anna, { scopes: ['query:read'] }),
    ];
    expect((await api.request(reader.value, 'GET', at(anna))).statusCode).toBe(200);
    const refused = await api.request(reader.value, 'POST', at(anna), {});
    expect([refused.statusCode, refused.json()]).toEqual([403, refusals.scope('action:write')]);
    expect((await api.request(none.value, 'GET', at(anna))).json()).toEqual(refusals.scope('action:read'));
  });
});

test('the examples of the documentation are taken', async () => {
  const page = readFileSync(path.resolve(import.meta.dirname, '../../docs/actions.md'), 'utf8');
  const [created, changed] = [...page.matchAll(/ -d '(\{[^']+\})'/g)].map((match) =>
    JSON.parse(match[1] as string),
  );
  const made = await create(created);
  expect(made.steps).toHaveLength(2);
  expect((await ask('PATCH', `${made.id}/`, changed)).json()).toMatchObject({ deleted: true });
});
