import { beforeAll, describe, expect, test } from '@jest/globals';
import { apiForFile, type Tenant } from '../support/api.ts';
import { insertExportOf } from '../support/batch-export-rows.ts';
import { refusals } from '../support/refusals.ts';
import { fill, idsOf, managed, type Operation } from '../support/routes.ts';

const api = apiForFile({ SLUICE_REFUSALS_PER_MINUTE: '0' });
let anna: Tenant;
let all: Operation[];

/** SDKs call these, of many versions. */
const isOfSdks = ({ path }: Operation) =>
  /\/(flags\/definitions|local_evaluation|remote_config)\/?$/.test(path);
/** It says first what else it needs. */
const needsMore = ({ path }: Operation) => /\/(values|find|test|icon|evaluation_reasons)\/$/.test(path);
const name = ({ method, path }: Operation) => `${method} ${path}`;
const ask = (one: Operation, query: string, key: Tenant | string | null = anna) =>
  api.request(key, one.method, fill(one.path, idsOf(anna)) + query);

beforeAll(async () => {
  anna = await api.createTenant('Anna');
  await insertExportOf(api.pool, anna);
  all = managed(api.app).filter(({ isStream }) => !isStream);
});

describe('a query parameter that a route does not know', () => {
  test('is refused by every list, with its name', async () => {
    const lists = all.filter(
      ({ method, path }) => method === 'GET' && !/\{(?!project_id|organization_id)/.test(path),
    );
    expect(lists.length).toBeGreaterThan(30);
    const answers: Record<string, unknown> = {};
    for (const one of lists.filter((list) => !isOfSdks(list) && !needsMore(list))) {
      const answer = await ask(one, '?emial=x');
      answers[name(one)] = [answer.statusCode, answer.json()];
    }
    const refused = [
      400,
      refusals.field('emial', 'invalid_input', 'There is no field or parameter "emial" here.'),
    ];
    for (const [route, answer] of Object.entries(answers)) {
      expect([route, answer]).toEqual([route, refused]);
    }
  });

  test('is never ignored: the answer is a refusal of it, or that the thing is not there', async () => {
    for (const one of all.filter((operation) => !isOfSdks(operation) && !operation.hasBody)) {
      if (needsMore(one)) continue;
      const answer = await ask(one, '?delete_everything=true');
      const seen = answer.statusCode === 404 ? 'absent' : [answer.statusCode, answer.json().attr];
      if (seen !== 'absent') expect([name(one), seen]).toEqual([name(one), [400, 'delete_everything']]);
    }
  });

  test('does not matter to the routes of SDKs', async () => {
    const ofSdks = all.filter(isOfSdks);
    expect(ofSdks.length).toBeGreaterThanOrEqual(3);
    for (const one of ofSdks) {
      const { statusCode } = await ask(one, `?token=${anna.projectToken}&_=17&ver=1.2.3`);
      expect([name(one), [200, 404].includes(statusCode)]).toEqual([name(one), true]);
    }
  });
});

describe('format, client_query_id, token and personal_api_key', () => {
  test('are taken everywhere, and change nothing', async () => {
    for (const one of all.filter(({ method }) => method === 'GET')) {
      const plain = await ask(one, '');
      const query = `?format=json&client_query_id=7&token=${anna.projectToken}&personal_api_key=${anna.key}`;
      const adorned = await ask(one, query, null);
      expect([name(one), adorned.statusCode]).toEqual([name(one), plain.statusCode]);
    }
  });

  test('another format is refused where the answer has none', async () => {
    const answer = await api.request(anna, 'GET', `/api/projects/${anna.projectId}/cohorts/?format=xml`);
    expect([answer.statusCode, answer.json()]).toEqual([
      400,
      refusals.field('format', 'invalid_choice', 'This answer has the format "json" only.'),
    ]);
  });

  test('no link to another page has the key', async () => {
    for (const name of ['a', 'b']) await api.request(anna, 'POST', '/api/projects/', { name });
    const answer = await api.request(
      null,
      'GET',
      `/api/projects/?limit=1&format=json&personal_api_key=${anna.key}`,
    );
    expect(answer.json().next).toBe('https://sluice.test/api/projects/?format=json&limit=1&offset=1');
  });
});
