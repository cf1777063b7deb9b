import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { KIND_NAMES, KINDS } from '../../integrations/kinds/registry.ts';
import { secretValues, substitute } from '../../integrations/rules/substitution.ts';
import { secretKeys } from '../../values/marked-secrets.ts';
import { refusals } from '../support/refusals.ts';
import { documentOf } from '../support/routes.ts';
import { CANARY, EXAMPLES, exampleOf, integrationsForFile } from './support.ts';

const { api, tenants, ask, create, resolve, seen } = integrationsForFile();

test('every kind has an example here', () => {
  expect(EXAMPLES.map((one) => one.kind)).toEqual(KIND_NAMES);
});

describe.each(EXAMPLES)('an integration of the kind $kind', ({ kind, config, shown, display_name, url }) => {
  test('is created, listed, shown and deleted, always without its secrets', async () => {
    const made = await ask('POST', '', { kind, config });
    expect([made.statusCode, made.json()]).toEqual([
      201,
      {
        id: expect.any(Number),
        kind,
        config: shown,
        created_at: expect.stringMatching(/Z$/),
        created_by: expect.objectContaining({ id: tenants.anna.userId, email: tenants.anna.email }),
        errors: '',
        display_name,
      },
    ]);
    const { id } = made.json();
    expect((await ask('GET', `${id}/`)).json()).toEqual(made.json());
    expect((await ask('GET', `?kind=${kind}&limit=1`)).json()).toMatchObject({ results: [made.json()] });
    const gone = await ask('DELETE', `${id}/`);
    expect([gone.statusCode, gone.body]).toEqual([204, '']);
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const answer = await ask(method, `${id}/`, method === 'PATCH' ? {} : undefined);
      expect([answer.statusCode, answer.json()]).toEqual([404, refusals.notFound()]);
    }
    expect(await resolve(id)).toBeUndefined();
  });

  test('requires its keys, and knows no others', async () => {
    for (const [key, field] of Object.entries(KINDS.find((one) => one.kind === kind)?.fields.shape ?? {})) {
      const { [key]: _, ...rest } = config;
      if (field.safeParse(undefined).success) continue;
      const answer = await ask('POST', '', { kind, config: rest });
      expect([answer.statusCode, answer.json()]).toEqual([
        400,
        refusals.field(`config__${key}`, 'required', 'This field is required.'),
      ]);
    }
    const answer = await ask('POST', '', { kind, config: { ...config, [CANARY]: 1 } });
    expect(answer.json()).toMatchObject({
      attr: 'config',
      detail: expect.stringMatching(/^The configuration has a key that /),
    });
  });

  test('refuses secrets of a wrong form without repeating them', async () => {
    const { fields } = KINDS.find((one) => one.kind === kind) ?? KINDS[0] ?? { fields: undefined };
    for (const key of secretKeys(fields as NonNullable<typeof fields>)) {
      for (const wrong of [
        '',
        5,
        true,
        [CANARY],
        `${CANARY}\r\nx: y`,
        CANARY.repeat(5000),
        { [CANARY]: 1 },
      ]) {
        const answer = await ask('POST', '', { kind, config: { ...config, [key]: wrong } });
        const { attr } = answer.json();
        expect([key, wrong, answer.statusCode, attr]).toEqual([key, wrong, 400, `config__${key}`]);
      }
    }
  });

  test('keeps its secrets in a change of its name, and logs no secret', async () => {
    const id = await create(kind);
    const before = await resolve(id);
    const renamed = await ask('PATCH', `${id}/`, { config: { name: 'Renamed' } });
    expect([renamed.statusCode, renamed.json().display_name]).toEqual([200, 'Renamed']);
    expect(await resolve(id)).toEqual({ ...before, inputs: { ...before?.inputs, name: 'Renamed' } });
    const again = await ask('PATCH', `${id}/`, { kind, config });
    expect(again.statusCode).toBe(200);
  });

  test('gives a run placeholders in place of its secrets', async () => {
    const id = await create(kind);
    const resolved = await resolve(id);
    if (!resolved) throw new Error('it is not there');
    const { inputs, substitution } = resolved;
    expect(JSON.stringify(inputs)).not.toContain(CANARY);
    expect(inputs).toMatchObject(shown);
    expect(secretValues([substitution]).length).toBeGreaterThan(0);
    expect(JSON.stringify(await resolve(id, tenants.anna, 'other'))).not.toContain(
      substitution.placeholders[0]?.marker ?? 'none',
    );
    const { placeholders, signing } = substitution;
    expect(placeholders.length > 0).toBe(signing?.scheme !== 'aws-sigv4');
    if (url === undefined) return;
    const request = { url, headers: { authorization: String(inputs.authorization) }, body: null };
    const { authorization } = substitute(request, [substitution]).headers;
    const secret = String(config.access_token ?? config.api_key ?? config.password);
    const basic = Buffer.from(`${config.site_id ?? config.username}:${secret}`).toString('base64');
    expect(authorization).toBe(config.site_id || config.username ? `Basic ${basic}` : `Bearer ${secret}`);
    expect(() => substitute({ ...request, url: 'https://evil.example/' }, [substitution])).toThrow(
      'must not be sent to evil.example',
    );
  });
});

describe('the address of a webhook', () => {
  test.each([
    ['discord', 'http://discord.com/api/webhooks/1/a'],
    ['discord', 'https://discord.com.evil.com/api/webhooks/1/a'],
    ['discord', 'https://evildiscord.com/api/webhooks/1/a'],
    ['discord', 'https://u:p@discord.com/api/webhooks/1/a'],
    ['discord', 'https://discord.com:8443/api/webhooks/1/a'],
    ['microsoft-teams', 'https://webhook.office.com.evil.com/a'],
    ['microsoft-teams', 'https://evil.com/a.webhook.office.com'],
    ['microsoft-teams', 'javascript:alert(1)'],
  ])('of %s must be one of its own: not %s', async (kind, webhook_url) => {
    const answer = await ask('POST', '', { kind, config: { webhook_url } });
    expect([answer.statusCode, answer.json().attr]).toEqual([400, 'config__webhook_url']);
    expect(answer.json().detail).toMatch(/^It must be an https URL of /);
  });

  test('is where a run sends it, and nowhere else', async () => {
    const resolved = await resolve(await create('discord'));
    if (!resolved) throw new Error('it is not there');
    const { inputs, substitution } = resolved;
    const request = { headers: {}, body: '{}' };
    expect(substitute({ ...request, url: `${inputs.webhook_url}` }, [substitution]).url).toBe(
      exampleOf('discord').config.webhook_url,
    );
    const elsewhere = `https://ptb.discord.com/?x=${inputs.webhook_url}`;
    expect(() => substitute({ ...request, url: elsewhere }, [substitution])).toThrow('must not be sent to');
  });
});

interface Variant {
  properties: { kind: { enum: string[] }; config: { properties: Record<string, { writeOnly?: boolean }> } };
}

test('the document of the API tells the keys of each kind, and which are in no answer', () => {
  const body = documentOf(api.app).paths['/api/projects/{project_id}/integrations/']?.post?.requestBody as {
    content: Record<string, { schema: { oneOf: Variant[] } }>;
  };
  const variants = body.content['application/json']?.schema.oneOf ?? [];
  expect(variants.map((one) => one.properties.kind.enum)).toEqual(KIND_NAMES.map((one) => [one]));
  for (const [index, { fields }] of KINDS.entries()) {
    const keys = variants[index]?.properties.config.properties ?? {};
    expect(Object.keys(keys).filter((key) => keys[key]?.writeOnly)).toEqual(secretKeys(fields));
  }
});

test('the examples of the documentation are taken, and the page names every kind', async () => {
  const page = readFileSync(path.resolve(import.meta.dirname, '../../docs/integrations.md'), 'utf8');
  const [created, changed] = [...page.matchAll(/ -d '(\{[^']+\})'/g)].map((match) =>
    JSON.parse(match[1] as string),
  );
  const made = await ask('POST', '', created);
  expect(made.statusCode).toBe(201);
  expect((await ask('PATCH', `${made.json().id}/`, changed)).statusCode).toBe(200);
  for (const { kind, fields } of KINDS) {
    for (const key of Object.keys(fields.shape))
      expect([kind, key, page.includes(`\`${key}\``)]).toEqual([kind, key, true]);
    expect(page).toContain(`\`${kind}\``);
  }
});

test('no secret was in an answer', () => {
  expect(seen.length).toBeGreaterThan(100);
  expect(seen.filter((one) => one.includes(CANARY))).toEqual([]);
});
