import { expect, test } from '@jest/globals';
import { ADA, PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();

test('the webhook sends the event and its person', async () => {
  const tried = await trials.run('template-webhook', {
    inputs: { url: 'https://example.com/{event.distinct_id}' },
  });
  expect(tried.status).toBe('success');
  expect(trials.heard).toMatchObject([
    {
      ...{ method: 'POST', url: 'https://example.com/ada' },
      headers: { 'content-type': 'application/json' },
      body: { event: { event: PAID.event }, person: { id: ADA.id } },
    },
  ]);
});

test('the webhook fails when it is refused, and says how', async () => {
  const answers = [{ status: 400, body: { message: 'Bad Request' } }];
  const tried = await trials.run('template-webhook', { inputs: { url: 'https://example.com/' }, answers });
  expect(tried.status).toBe('error');
  expect(tried.errors.join('\n')).toContain("Webhook failed with status 400: {'message': 'Bad Request'}");
});

test('the webhook shows requests and answers when it is asked to', async () => {
  const tried = await trials.run('template-webhook', {
    inputs: { url: 'https://example.com/', debug: true },
  });
  const printed = tried.logs.filter(({ level }) => level === 'info').map(({ message }) => message);
  expect(printed[0]).toMatch(/^Request, https:\/\/example\.com\/, \{/);
  expect(printed[1]).toBe('Response, 200, {}');
});
