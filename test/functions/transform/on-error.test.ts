import { beforeEach, describe, expect, test } from '@jest/globals';
import type { Tenant } from '../../support/api.ts';
import { transformingApi } from './support.ts';

const api = transformingApi();
let anna: Tenant;
beforeEach(async () => {
  anna = await api.createTenant('Anna');
});

const FAULTS: [what: string, hog: string][] = [
  ['throws', "throw Error('no')"],
  ['calls what does not exist', 'return nothingLikeThis(1)'],
  ['captures an event', "postHogCapture({'event': 'a'})\nreturn event"],
  ['asks for a page', "fetch('https://example.com')\nreturn event"],
  ['returns a text', "return 'x'"],
  ['returns a list', 'return [event]'],
  ['returns an event without properties', "return {'event': 'a', 'distinct_id': 'b'}"],
  ['never ends', 'while (true) {}\nreturn event'],
  ['takes all memory', "let text := 'x'\nwhile (true) { text := concat(text, text) }\nreturn event"],
  [
    'returns a small value that is huge as JSON',
    "let list := ['x']\nfor (let i := 0; i < 40; i := i + 1) { list := [list, list] }\nlet changed := event\nchanged.properties.list := list\nreturn changed",
  ],
];

describe.each(FAULTS)('a transformation that %s', (_what, hog) => {
  test('lets the event pass as it was, drops it, or refuses the request, as it is told', async () => {
    const id = await api.transform(anna, { hog, on_error: 'pass' });
    const [passed] = await api.stored(anna, [{ properties: { secret: 1 } }]);
    expect(passed).toMatchObject({ event: 'seen', distinct_id: 'ada', transformations: null });
    expect(passed?.properties).toEqual(expect.objectContaining({ secret: 1 }));

    await api.change(anna, id, { on_error: 'drop' });
    expect(await api.stored(anna, [{ event: 'one' }, { event: 'two' }])).toEqual([]);

    await api.change(anna, id, { on_error: 'refuse' });
    const before = await api.countEvents(anna);
    const answer = await api.send(anna, [{ event: 'one' }, { event: 'two' }]);
    expect([answer.statusCode, answer.headers['retry-after']]).toEqual([503, '5']);
    expect(answer.json().detail).toBe(
      'A transformation of the project failed, and the event must not be stored without it. Send the events again.',
    );
    expect(await api.countEvents(anna)).toBe(before);
    expect(await api.counts(id)).toEqual({
      'failure failed': 4,
      'other dropped_on_error': 2,
      'other refused_on_error': 1,
    });
    expect((await api.logs(id)).every((line) => line.startsWith('error '))).toBe(true);
    await api.change(anna, id, { enabled: false });
    expect(await api.stored(anna, [{}])).toHaveLength(1);
  });
});

test('what is no text as name or id of the event leaves that, and what else is good counts if failures pass', async () => {
  const hog = `let changed := event
    changed.event := 5
    changed.properties.email := null
    return changed`;
  const id = await api.transform(anna, { hog });
  const [passed] = await api.stored(anna, [{ properties: { email: 'a@b.test' } }]);
  expect(passed).toMatchObject({ event: 'seen', properties: { email: null } });
  expect(await api.counts(id)).toEqual({ 'failure failed': 1 });
  await api.change(anna, id, { on_error: 'refuse' });
  expect((await api.send(anna, [{}])).statusCode).toBe(503);
});

test.each([
  ['inputs', { inputs: { one: { value: '{jsonParse(event.properties.text)}' } } }, 'failure inputs_failed'],
  [
    'filters',
    { filters: { properties: [{ type: 'hogql', key: "jsonParse(properties.text) = 'x'" }] } },
    'failure filtering_failed',
  ],
])('errors of %s count as failures', async (_what, content, metric) => {
  const id = await api.transform(anna, {
    ...{ hog: 'return event', on_error: 'drop', ...content },
    inputs_schema: [{ key: 'one', type: 'string', label: 'One' }],
  });
  expect(await api.stored(anna, [{ properties: { text: '{no json' } }])).toEqual([]);
  expect(await api.counts(id)).toMatchObject({ [metric]: 1, 'other dropped_on_error': 1 });
});

test('the other events of a request, and the other transformations, do not suffer', async () => {
  await api.transform(anna, {
    hog: "if (event.event = 'bad') { throw Error('no') }\nreturn event",
    on_error: 'drop',
  });
  await api.transform(anna, {
    hog: "let changed := event\nchanged.properties.half := 'done'\nthrow Error('always')",
  });
  await api.transform(anna, {
    hog: "let changed := event\nchanged.properties.mark := 'yes'\nreturn changed",
  });
  const found = await api.stored(anna, [{ event: 'good' }, { event: 'bad' }, { event: 'fine' }]);
  expect(found.map((one) => [one.event, one.properties.mark, one.properties.half])).toEqual([
    ['fine', 'yes', undefined],
    ['good', 'yes', undefined],
  ]);
  const warnings = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/ingestion_warnings/`);
  if (warnings.statusCode === 200) expect(warnings.body).toContain('transformation_failed');
});

test('a template that removes personal data refuses, any other lets pass, and users may decide otherwise', async () => {
  const create = async (body: Record<string, unknown>) => {
    const answer = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/hog_functions/`, body);
    return answer.statusCode === 201 ? answer.json().on_error : answer.json();
  };
  const inputs = { propertiesToHash: { value: 'email' }, salt: { value: 'pepper' } };
  expect(await create({ template_id: 'template-pii-hashing', inputs })).toBe('refuse');
  expect(await create({ template_id: 'template-pii-hashing', inputs, on_error: 'drop' })).toBe('drop');
  expect(await create({ template_id: 'template-geoip' })).toBe('pass');
  expect(await create({ hog: 'return event', type: 'transformation', on_error: null })).toBe('pass');
  expect(await create({ hog: 'return 1', type: 'destination' })).toBeNull();
  expect(await create({ hog: 'return 1', type: 'destination', on_error: null })).toBeNull();
  expect(await create({ hog: 'return 1', type: 'destination', on_error: 'drop' })).toMatchObject({
    ...{ attr: 'on_error', detail: 'Only transformations have `on_error`.' },
  });
  expect(await create({ hog: 'return 1', type: 'transformation', on_error: 'ignore' })).toMatchObject({
    attr: 'on_error',
  });
});
