import { beforeAll, describe, expect, test } from '@jest/globals';
import { createPool } from '../../db/pool.ts';
import { conditionValues, shownValue } from '../../queries/rules/values.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { asReader } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { queriesOf } from '../support/query-log.ts';

const api = apiForFile();
const DAY = 86_400_000;
let anna: Tenant;
let otto: Tenant;

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  otto = await api.createTenant('Otto');
  const now = Date.now();
  const of = (event: string, properties: object, timestamp = now - 60_000, distinctId = 'ada') =>
    capturedEvent({
      ...{ event, timestamp, distinct_id: distinctId, received_at: now },
      properties: { ...properties, $process_person_profile: false },
    });
  await api.ingest.submit({
    projectId: anna.projectId,
    events: [
      of('buy', { browser: 'Firefox', plan: 'paid', price: 10, tags: ['red', 'blue', null, ['deep']] }),
      of('buy', { browser: 'Firefox', plan: 'Free', price: 2.5, of: { b: 1, a: [1] }, tags: 'red' }),
      of('look', { browser: 'Chrome', paid: true, none: null, long: 'x'.repeat(1_001), odd: '100% _x' }),
      of('$pageview', { browser: 'Safari' }, now - 6 * DAY, 'bob'),
      of('look', { browser: 'Ancient' }, now - 9 * DAY),
      of('look', { browser: 'Future' }, now + DAY),
      of('buy', Object.fromEntries([['many', Array.from({ length: 20 }, (_, at) => `value ${at}`)]])),
      of('look', { browser: 'Huge', filler: 'x'.repeat(1_100_000) }),
    ],
  });
  await api.ingest.submit({ projectId: otto.projectId, events: [of('secret', { browser: 'Hidden' })] });
});

const ask = (query: string, tenant = anna) =>
  api.request(tenant, 'GET', `/api/projects/${anna.projectId}/events/values/?${query}`);
async function values(query: string): Promise<string[]> {
  const answer = await ask(query);
  expect({ status: answer.statusCode, ...(answer.statusCode !== 200 && answer.json()) }).toEqual({
    status: 200,
  });
  return answer.json().map(({ name }: { name: string }) => name);
}

describe('values of a property', () => {
  test('are those of the last days, the shortest first', async () => {
    expect(await values('key=browser')).toEqual(['Chrome', 'Safari', 'Firefox']);
    expect((await ask('key=browser')).headers['cache-control']).toBe('max-age=10');
  });

  test.each([
    ['key=price', ['10', '2.5']],
    ['key=paid', ['true']],
    ['key=tags', ['red', 'blue', '["deep"]']],
    ['key=of', ['{"a":[1],"b":1}']],
    ['key=none', []],
    ['key=long', []],
    ['key=unknown', []],
    ["key=' or 1=1 --", []],
    ['key=browser&value=F', ['Safari', 'Firefox']],
    ['key=tags&value=LU', ['blue']],
    ['key=odd&value=%25', ['100% _x']],
    ['key=odd&value=x%25', []],
    ['key=browser&event_name=buy', ['Firefox']],
    ['key=browser&event_name=buy&event_name=%24pageview', ['Safari', 'Firefox']],
    ['key=price&properties_plan=free', ['2.5']],
    ['key=price&properties_plan=["PAID","free"]', ['10', '2.5']],
    ['key=plan&properties_price=10', ['paid']],
    ['key=price&properties_plan=free&properties_browser=chrome', []],
    ['key=price&properties_plan=', []],
    ['key=price&properties_plan=[]', []],
    ['key=event&is_column=true', ['buy', 'look', '$pageview']],
    ['key=distinct_id&is_column=true&value=B', ['bob']],
    ['key=event', []],
  ])('%s', async (query, expected) => {
    expect(await values(query)).toEqual(expected);
  });

  test('are ten at most', async () => {
    expect(await values('key=many')).toHaveLength(10);
  });

  test("of another project are nobody's", async () => {
    expect((await ask('key=browser', otto)).statusCode).toBe(404);
  });

  test.each([
    ['', 'key', 'You must provide a key'],
    ['key=', 'key', 'You must provide a key'],
    ['key=properties&is_column=true', 'key', expect.stringContaining('columns with values')],
    ['key=plan&evnt_name=buy', 'evnt_name', 'There is no field or parameter "evnt_name" here.'],
    [`key=plan&value=${'x'.repeat(401)}`, 'value', expect.any(String)],
  ])('%.40s is refused', async (query, attr, detail) => {
    const answer = await ask(query);
    expect(answer.statusCode).toBe(400);
    expect(answer.json()).toMatchObject({ type: 'validation_error', attr, detail });
  });
});

test('custom_event stands for the names of events of the project', async () => {
  expect(await values('key=custom_event')).toEqual(['buy', 'look']);
  expect(await values('key=custom_event&value=OO')).toEqual(['look']);
});

test('values are read as queries are: by the role of queries, for a bounded time, and nothing is changed', async () => {
  const { result, queries } = await queriesOf(() => ask('key=browser'));
  expect(result.statusCode).toBe(200);
  const at = queries.findIndex((text) => text.includes('json_array_elements_text'));
  expect(queries[at - 1]).toMatch(
    new RegExp(
      `begin read only; .*set local sluice.project = '${anna.projectId}'; set local statement_timeout = '15000'$`,
    ),
  );
});

test('a project that asks a lot leaves a turn to the others', async () => {
  const reader = createPool({ url: asReader(api.config.DATABASE_URL as string), size: 2, name: 'held' });
  const app = await api.rebuild({ reader });
  const holder = await api.pool.connect();
  const asking = (tenant: Tenant) =>
    app.inject({
      url: `/api/projects/${tenant.projectId}/events/values/?key=browser`,
      headers: { authorization: `Bearer ${tenant.key}` },
    });
  try {
    await holder.query('begin; lock table events in access exclusive mode');
    const answers = [asking(anna), asking(anna), asking(anna)];
    answers.push(asking(otto));
    // Each of the two has one connection, and waits for the table.
    await eventually(async () => {
      const { rows } = await api.pool.query(
        `select 1 from pg_stat_activity where application_name = 'sluice-held' and wait_event_type = 'Lock'`,
      );
      return rows.length === 2;
    });
    await holder.query('rollback');
    const found = await Promise.all(answers);
    expect(found.map(({ statusCode }) => statusCode)).toEqual([200, 200, 200, 200]);
    expect(found[3]?.json()).toEqual([{ name: 'Hidden' }]);
  } finally {
    await holder.query('rollback');
    holder.release();
    await app.close();
    await reader.end();
  }
});

describe('each wall holds alone', () => {
  test('the condition of the statement, when its role sees everything', async () => {
    const app = await api.rebuild({ reader: api.pool });
    try {
      const answer = await app.inject({
        url: `/api/projects/${otto.projectId}/events/values/?key=browser`,
        headers: { authorization: `Bearer ${otto.key}` },
      });
      expect(answer.json()).toEqual([{ name: 'Hidden' }]);
    } finally {
      await app.close();
    }
  });

  test('the role, when the statement names another project', async () => {
    const client = await api.reader.connect();
    try {
      await client.query('begin');
      await client.query(`set local sluice.project = '${otto.projectId}'`);
      const ofAnna = 'select 1 from events where project_id = $1';
      expect((await client.query(ofAnna, [anna.projectId])).rows).toEqual([]);
      expect((await client.query(ofAnna, [otto.projectId])).rows).toHaveLength(1);
      await expect(client.query('select 1 from definitions')).rejects.toThrow('permission denied');
    } finally {
      await client.query('rollback');
      client.release();
    }
  });
});

test('a condition is read from JSON, or stands for itself', () => {
  expect(conditionValues('["A",1,true,null,""]')).toEqual(['a', '1', 'true']);
  expect(conditionValues('"A"')).toEqual(['a']);
  expect(conditionValues('[broken')).toEqual(['[broken']);
  expect(conditionValues('')).toEqual([]);
  expect(shownValue('[broken')).toBe('[broken');
  expect(shownValue('[{"b":1,"a":null}]')).toBe('[{"a":null,"b":1}]');
});
