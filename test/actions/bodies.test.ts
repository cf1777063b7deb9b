import { describe, expect, test } from '@jest/globals';
import { refusals } from '../support/refusals.ts';
import { actionsForFile } from './support.ts';

const { api, at, ask, create } = actionsForFile();

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
