// Persons of static cohorts, from files and lists, and who uses a cohort.
import { beforeAll, describe, expect, test } from '@jest/globals';
import { readUpload } from '../../cohorts/rules/upload.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const api = apiForFile();
let anna: Tenant;
let bert: Tenant;
const persons = new Map<string, string>();

async function store(tenant: Tenant, name: string) {
  const id = uuidv7();
  await api.pool.query(
    "insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at) values ($1, $2, now(), true, jsonb_build_object('email', $3::text), 1, now())",
    [tenant.projectId, id, `${name}@Example.com`],
  );
  await api.pool.query(
    'insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at) values ($1, $2, $3, 1, now())',
    [tenant.projectId, name, id],
  );
  if (tenant === anna) persons.set(name, id);
}

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  bert = await api.createTenant('Bert');
  for (const name of ['ann', 'ben', 'cy, the "third"']) await store(anna, name);
  await store(bert, 'foreign');
});

const url = (rest = '') => `/api/projects/${anna.projectId}/cohorts/${rest}`;
function form(fields: Record<string, string>, csv: string | Buffer | undefined) {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.set(name, value);
  if (csv !== undefined)
    data.set('csv', new File([new Uint8Array(Buffer.from(csv))], 'persons.csv', { type: 'text/csv' }));
  return new Response(data);
}
async function send(
  method: 'POST' | 'PATCH',
  rest: string,
  fields: Record<string, string>,
  csv?: string | Buffer,
) {
  const body = form(fields, csv);
  const type = body.headers.get('content-type') as string;
  return api.request(anna, method, url(rest), Buffer.from(await body.arrayBuffer()), {
    'content-type': type,
  });
}
const members = async (id: number) =>
  (await api.request(anna, 'GET', url(`${id}/persons/`)))
    .json()
    .results.map((one: { id: string }) => [...persons].find(([, uuid]) => uuid === one.id)?.[0])
    .sort();

describe('a file of persons', () => {
  test('makes a static cohort, and adds to it', async () => {
    const answer = await send(
      'POST',
      '',
      { name: 'From file', is_static: 'true' },
      'ann\r\nnobody\r\nforeign\r\nann\r\n',
    );
    expect([answer.statusCode, answer.json()]).toEqual([
      201,
      expect.objectContaining({
        ...{ name: 'From file', is_static: true, count: 1 },
        upload: { named: 3, unknown: 2, examples: expect.arrayContaining(['nobody', 'foreign']) },
      }),
    ]);
    const { id } = answer.json();
    expect(await members(id)).toEqual(['ann']);
    const more = await send(
      'PATCH',
      `${id}/`,
      {},
      'email;plan\nBEN@example.com;free\n"nobody@example.com";x\n',
    );
    expect([more.statusCode, more.json().count, more.json().upload.unknown]).toEqual([200, 2, 1]);
    const byId = await send('PATCH', `${id}/`, {}, `person-id\n${persons.get('cy, the "third"')}\nwrong\n`);
    expect([byId.json().count, byId.json().upload.unknown]).toEqual([3, 1]);
    expect(await members(id)).toEqual(['ann', 'ben', 'cy, the "third"']);
    const log = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/activity_log/`);
    expect(log.json().results[0]).toMatchObject({
      scope: 'Cohort',
      detail: { persons_named: 2, persons_unknown: 1 },
    });
  });

  test('adds nobody by an email of another project', async () => {
    const csv = 'email\nforeign@example.com\nann@example.com\n';
    const answer = await send('POST', '', { name: 'Walled', is_static: 'true' }, csv);
    expect([answer.json().count, answer.json().upload]).toEqual([
      1,
      { named: 2, unknown: 1, examples: ['foreign@example.com'] },
    ]);
  });

  test('that cannot be read is refused, with its reason', async () => {
    const cases: [csv: string | Buffer, reason: RegExp][] = [
      ['a,b\n1,2', /supported ID header: .* Found columns: a, b$/],
      ['', /^This field/],
      ['\n\n', /^CSV file is empty/],
      ['distinct_id\n"open', /quoted value/],
      [Buffer.from([0x66, 0xff, 0x0a]), /not UTF-8/],
      ['a\0b', /character 0/],
    ];
    for (const [csv, reason] of cases) {
      const answer = await send('POST', '', { name: 'x', is_static: 'true' }, csv);
      expect([answer.statusCode, answer.json().detail]).toEqual([400, expect.stringMatching(reason)]);
    }
    const dynamic = await send('POST', '', { name: 'x' }, 'ann');
    expect([dynamic.statusCode, dynamic.json().attr]).toEqual([400, 'is_static']);
    const part = (name: string, value: string) =>
      `--x\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
    const whole = `${part('name', 'Raw')}${part('is_static', 'true')}${part('csv', '')}--x--`;
    const sent = async (body: string, type = 'multipart/form-data; boundary=x') => {
      const answer = await api.request(anna, 'POST', url(), body, { 'content-type': type });
      return [answer.statusCode, answer.json().detail];
    };
    expect(await sent(whole.replace(part('csv', ''), ''))).toEqual([201, undefined]);
    expect(await sent(`before\r\n${whole}\r\n`)).toEqual([400, 'This field may not be blank.']);
    const cannotBeRead = [400, expect.stringContaining('the parts of the form cannot be read')];
    for (const body of [
      'nothing',
      'x--x\r\n',
      '--x',
      '--x\r\n\r\n',
      part('name', 'x'),
      '--xx--\r\n',
      `--x\r\n${'a'.repeat(9_000)}\r\n\r\n\r\n--x--`,
      '--x\r\ncontent-disposition: form-data\r\n\r\n1\r\n--x--',
    ]) {
      expect([body.slice(0, 20), await sent(body)]).toEqual([body.slice(0, 20), cannotBeRead]);
    }
    expect(await sent(whole, 'multipart/form-data')).toEqual(cannotBeRead);
    expect(await sent(`${part('a', '1').repeat(101)}--x--`)).toEqual([
      400,
      expect.stringContaining('the form has more than 100 parts'),
    ]);
    const elsewhere = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/feature_flags/`, 'x', {
      'content-type': 'multipart/form-data; boundary=x',
    });
    expect(elsewhere.statusCode).toBe(415);
  });

  test('may be large, up to a bound', async () => {
    const lines = (count: number) => Array.from({ length: count }, (_, n) => `user-${n}`).join('\n');
    const large = await send('POST', '', { name: 'Large', is_static: 'true' }, `${lines(20_000)}\nann`);
    expect([large.statusCode, large.json().upload.named, large.json().count]).toEqual([201, 20_001, 1]);
    const tooLarge = await send(
      'POST',
      '',
      { name: 'x', is_static: 'true' },
      Buffer.alloc(9 * 1024 * 1024, 'a\n'),
    );
    expect(tooLarge.statusCode).toBe(413);
    await expect(readUpload(lines(11), 10)).rejects.toThrow(/more than 10 persons/);
  });
});

test.each([
  ['﻿distinct_id\na', 'distinct_id', ['a']],
  ['email\tdistinct id\nx\ta\n\tb', 'distinct_id', ['a', 'b']],
  ['"a,1"', 'distinct_id', ['a,1']],
  ['"a ""1"""\n  b  ', 'distinct_id', ['a "1"', 'b']],
  ['person_id,distinct_id,email\np,d,e', 'person_id', ['p']],
  ['plan,email\nfree', 'email', null],
])('the file %j is read', async (text, by, names) => {
  const read = readUpload(text, 10);
  if (names === null) await expect(read).rejects.toThrow(/CSV file contains no valid person IDs/);
  else expect(await read).toEqual({ by, names: new Set(names) });
});

test('a long file makes way for others while it is read, also one of empty lines', async () => {
  for (const file of [
    '\n'.repeat(10_000),
    Array.from({ length: 10_000 }, (_, n) => `user-${n}`).join('\n'),
  ]) {
    let rests = 0;
    const rest = async () => {
      rests += 1;
    };
    await readUpload(file, 10_000, rest).catch(() => undefined);
    expect(rests).toBeGreaterThanOrEqual(19);
  }
  await expect(readUpload(','.repeat(1_001), 10)).rejects.toThrow('more than 1000 columns');
});

test('persons are named in JSON, too', async () => {
  const body = {
    name: 'J',
    is_static: true,
    _create_static_person_ids: [persons.get('ann'), 'ben', uuidv7(), 'nobody'],
  };
  const made = await api.request(anna, 'POST', url(), body);
  expect([made.statusCode, made.json().upload]).toEqual([
    201,
    { named: 4, unknown: 2, examples: expect.any(Array) },
  ]);
  expect(await members(made.json().id)).toEqual(['ann', 'ben']);
});

test('a cohort tells who uses it', async () => {
  const filters = (values: unknown[]) => ({ properties: { type: 'AND', values } });
  const make = async (name: string, values: unknown[]) =>
    (await api.request(anna, 'POST', url(), { name, filters: filters(values) })).json().id;
  const inner = await make('Inner', [{ key: 'a', type: 'person', value: 'b' }]);
  const outer = await make('Outer', [{ key: 'id', type: 'cohort', value: inner }]);
  const flag = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/feature_flags/`, {
    key: 'uses',
    filters: { groups: [{ properties: [{ key: 'id', type: 'cohort', value: inner }] }] },
  });
  const used = await api.request(anna, 'GET', url(`${inner}/used_by/`));
  expect(used.json()).toEqual({
    feature_flags: [{ id: flag.json().id, key: 'uses', name: '', active: true }],
    batch_exports: [],
    functions: [],
    cohorts: [{ id: outer, name: 'Outer' }],
  });
  expect((await api.request(anna, 'GET', url(`${outer}/used_by/`))).json()).toEqual({
    feature_flags: [],
    batch_exports: [],
    functions: [],
    cohorts: [],
  });
});
