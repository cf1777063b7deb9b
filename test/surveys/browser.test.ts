import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { beforeAll, describe, expect, test } from '@jest/globals';
import { browse } from '../capture/chromium.ts';
import { CLIENTS, findChromium } from '../capture/client-programs.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = apiForFile();
let host: string;
let anna: Tenant;
beforeAll(async () => {
  host = await api.app.listen({ port: 0, host: '127.0.0.1' });
});

async function create(area: string, body: object) {
  const answer = await api.request(anna, 'POST', `/api/projects/${anna.projectId}/${area}/`, body);
  expect([answer.statusCode, answer.body]).toEqual([201, expect.any(String)]);
  return answer.json();
}
async function flagsOf(distinctId: string) {
  const payload = { api_key: anna.projectToken, distinct_id: distinctId };
  return (await api.app.inject({ method: 'POST', url: '/flags?v=2', payload })).json().flags;
}

const { found, reason } = findChromium();
if (found === undefined) process.stderr.write(`skipped: surveys in Chromium: ${reason}\n`);

describe.each([
  ['with all extensions', ['array.full.no-external.js']],
  ['with the extension for surveys', ['surveys.js', 'array.js']],
])('posthog-js %s in Chromium', (name, libraries) => {
  (found === undefined ? test.skip : test)(
    'shows a survey and a feature to choose, and what the visitor does is stored and counts',
    async () => {
      anna = await api.createTenant(name);
      const feature = await create('early_access_feature', { name: 'New search', stage: 'beta' });
      const action = await create('actions', { name: 'paid', steps: [{ event: 'order paid' }] });
      const survey = await create('surveys', {
        conditions: { actions: { values: [{ id: action.id, name: 'paid' }] } },
        ...{ name: 'Liking', type: 'popover', start_date: new Date().toISOString() },
        questions: [{ type: 'open', question: 'How do you like it?' }],
        appearance: { displayThankYouMessage: true, thankYouMessageHeader: 'Thanks, all noted' },
      });
      const names = ['$feature_enrollment_update', 'survey sent', 'survey shown'];
      const stored = async () => {
        const { rows } = await api.pool.query(
          'select event, properties from events where project_id = $1 and event = any($2) order by event',
          [anna.projectId, names],
        );
        return rows;
      };
      const arrived = eventually(async () => (await stored()).length === names.length);
      const folder = path.dirname(createRequire(import.meta.url).resolve('posthog-js/package.json'));
      const use = `window.useOffers(${JSON.stringify(host)}, ${JSON.stringify(anna.projectToken)}, (seen) => fetch('/done', { method: 'POST', body: seen }))`;
      const files = {
        '/': `<!doctype html><title>Shop</title><body>${libraries.map((one) => `<script src="/${one}"></script>`).join('')}<script src="/page.js"></script><script>${use}</script>`,
        '/page.js': `${readFileSync(path.join(CLIENTS, 'offers.js'), 'utf8')}; window.useOffers = useOffers;`,
        ...Object.fromEntries(
          libraries.map((one) => [`/${one}`, readFileSync(path.join(folder, 'dist', one), 'utf8')]),
        ),
      };
      const seen = JSON.parse(await browse(found as string, { files, path: '/', arrived }));
      expect(seen).toEqual({
        ...{ before: false, after: true, question: 'How do you like it?', thanks: 'Thanks, all noted' },
        features: [
          {
            ...{ id: feature.id, name: 'New search', description: '', stage: 'beta', documentationUrl: '' },
            ...{ payload: {}, flagKey: 'new-search' },
          },
        ],
        warnings: [],
      });
      await arrived;
      const [enrolled, sent, shown] = await stored();
      expect(enrolled.properties).toMatchObject({ $feature_flag: 'new-search', $feature_enrollment: true });
      expect(shown.properties.$survey_id).toBe(survey.id);
      expect(sent.properties).toMatchObject({
        ...{ $survey_id: survey.id, $survey_completed: true },
        [`$survey_response_${survey.questions[0].id}`]: 'Very much',
      });
      // What was chosen and answered counts for every client of this person, and for nobody else.
      await eventually(async () => (await flagsOf('visitor'))['new-search'].enabled === true);
      const { key } = survey.internal_targeting_flag;
      expect((await flagsOf('visitor'))[key].enabled).toBe(false);
      const others = await flagsOf('somebody-else');
      expect([others['new-search'].enabled, others[key].enabled]).toEqual([false, true]);
    },
    120_000,
  );
});
