import { describe, expect, test } from '@jest/globals';
import { ADA, PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();
const said = (tried: { errors: string[] }) => tried.errors.join('\n');

describe('zapier', () => {
  test.each(['hooks/catch/123/abc', '/hooks/catch/123/abc', 'https://hooks.zapier.com/hooks/catch/123/abc'])(
    'takes the hook %s',
    async (hook) => {
      const answers = [{ body: { status: 'success', id: '1' } }];
      const tried = await trials.run('template-zapier', { inputs: { hook }, answers });
      expect([tried.status, tried.errors]).toEqual(['success', []]);
      expect(trials.heard).toMatchObject([
        {
          ...{ method: 'POST', url: 'https://hooks.zapier.com/hooks/catch/123/abc' },
          headers: { 'content-type': 'application/json' },
          body: { event: { uuid: PAID.uuid }, person: { id: ADA.id } },
        },
      ]);
    },
  );

  test('sends an event without a person', async () => {
    const tried = await trials.run('template-zapier', { inputs: { hook: 'hooks/catch/1/x' }, person: null });
    expect(tried.errors).toEqual([]);
    expect(trials.heard[0]?.body).toMatchObject({ person: null });
  });

  test('refuses other hosts, and says when the hook is gone', async () => {
    const other = await trials.run('template-zapier', { inputs: { hook: 'https://example.com/a' } });
    expect(said(other)).toContain('The hook must be a path or URL of https://hooks.zapier.com/');
    expect(trials.heard).toEqual([]);
    const gone = await trials.run('template-zapier', {
      inputs: { hook: 'hooks/secret-path' },
      answers: [{ status: 410, body: { status: 'error' } }],
    });
    expect(said(gone)).toContain('Failed to start the Zap: 410');
    expect(JSON.stringify(gone)).not.toContain('secret-path');
  });
});

describe('make', () => {
  const inputs = { webhookUrl: 'https://hook.eu1.make.com/abc', body: { name: '{event.event}' } };

  test('starts a scenario', async () => {
    const tried = await trials.run('template-make', { inputs, answers: [{ body: 'Accepted' }] });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([
      { method: 'POST', url: 'https://hook.eu1.make.com/abc', body: { name: 'order paid' } },
    ]);
  });

  test('fails when it is refused, and at other addresses', async () => {
    const full = await trials.run('template-make', {
      inputs,
      answers: [{ status: 400, body: 'Queue is full.' }],
    });
    expect(said(full)).toContain('Error from make.com (status 400): Queue is full.');
    const other = await trials.run('template-make', {
      inputs: { webhookUrl: 'https://hook.example.com/make.com/' },
    });
    expect(said(other)).toContain(
      'Invalid URL. The URL should match the format: https://hook.<region>.make.com/<hookUrl>',
    );
    expect(trials.heard).toEqual([]);
  });
});

describe('replicator', () => {
  const inputs = { host: 'https://eu.i.posthog.com/', token: 'phc_1' };
  const run = (more: object) => trials.run('template-posthog-replicator', { inputs, ...more });

  test('sends a copy with the person', async () => {
    const event = {
      properties: { ...PAID.properties, $set: { first_name: 'Augusta' } },
      elements_chain: 'a:text="Buy"',
    };
    const tried = await run({ event, answers: [{ body: { status: 'Ok' } }] });
    expect([tried.status, tried.errors]).toEqual(['success', []]);
    expect(trials.heard).toMatchObject([{ method: 'POST', url: 'https://eu.i.posthog.com/i/v0/e/' }]);
    expect(trials.heard[0]?.body).toEqual({
      ...{
        token: 'phc_1',
        uuid: PAID.uuid,
        event: PAID.event,
        distinct_id: 'ada',
        timestamp: PAID.timestamp,
      },
      properties: {
        ...PAID.properties,
        $set: { ...ADA.properties, first_name: 'Augusta' },
        $elements_chain: 'a:text="Buy"',
        $replicated_through: ['https://sluice.test/project/1'],
      },
    });
  });

  test('sends no person where there is none', async () => {
    await run({ person: null });
    expect(trials.heard[0]?.body).not.toHaveProperty('properties.$set');
    await run({ event: { properties: { $process_person_profile: false } } });
    expect(trials.heard[0]?.body).not.toHaveProperty('properties.$set');
  });

  test('copies only what it is told to, when it is', async () => {
    const more = { include_all_properties: false, properties: { plan: '{person.properties.plan}', a: 1 } };
    await run({ inputs: { ...inputs, ...more } });
    expect(trials.heard[0]?.body).toMatchObject({ event: 'order paid' });
    expect(trials.heard[0]?.body).toHaveProperty('properties', {
      ...{ plan: null, a: 1, $replicated_through: ['https://sluice.test/project/1'] },
    });
  });

  test('does not copy in a circle', async () => {
    const properties = { $replicated_through: ['https://sluice.test/project/1'] };
    const tried = await run({ event: { properties } });
    expect([tried.status, trials.heard]).toEqual(['success', []]);
    expect(tried.logs.map(({ message }) => message).join('\n')).toContain('already copied from this project');
  });

  test('fails when it is refused', async () => {
    const body = {
      type: 'authentication_error',
      code: 'invalid_api_key',
      detail: 'Project API key invalid.',
    };
    const tried = await run({ answers: [{ status: 401, body }] });
    expect(said(tried)).toContain('Failed to copy the event: 401: Project API key invalid.');
  });
});
