import { beforeAll, describe, expect, test } from '@jest/globals';
import { Validator } from '@seriousme/openapi-schema-validator';
import Fastify from 'fastify';
import { serializerCompiler } from 'fastify-type-provider-zod';
import YAML from 'yaml';
import { z } from 'zod';
import { describeApi } from '../../api/openapi.ts';
import { EVERYBODY, storeCohort, storeFlag } from '../flags/support.ts';
import { apiForFile, type Tenant } from '../support/api.ts';
import { insertExportOf } from '../support/batch-export-rows.ts';
import { insertFunctionOf } from '../support/function-rows.ts';
import { documentOf, fill, idsOf, type OpenApiDocument, operations } from '../support/routes.ts';
import { insertPerson } from '../support/rows.ts';

const api = apiForFile();
let document: OpenApiDocument;
let anna: Tenant;
beforeAll(async () => {
  document = documentOf(api.app);
  anna = await api.createTenant('Anna');
  await insertExportOf(api.pool, anna);
});

/** A type of destination, as the document describes it. */
interface Variant {
  title: string;
  required: string[];
  properties: {
    type: { enum: string[] };
    config: { required?: string[]; properties: Record<string, { writeOnly?: boolean }> };
  };
}

/** Paths that serve the document itself. */
const UNDOCUMENTED = /^\/api\/schema/;

describe('the OpenAPI document', () => {
  test('is valid OpenAPI 3.1', async () => {
    expect(document.openapi).toBe('3.1.0');
    const result = await new Validator().validate(structuredClone(document) as never);
    expect(result.errors).toBeUndefined();
    expect(result.valid).toBe(true);
  });

  test('has every route of the app with its access, and no other', async () => {
    const routes = routesOf(api.app.printRoutes({ commonPrefix: false }));
    const documented = operations(api.app).map(
      (one) => `${one.method} ${one.path.replace(/(.)\/$/, '$1').replaceAll(/\{(\w+)\}/g, ':$1')}`,
    );
    expect(routes.length).toBeGreaterThan(30);
    expect(routes.filter((route) => !UNDOCUMENTED.test(route.split(' ')[1] as string)).sort()).toEqual(
      documented.sort(),
    );
  });

  test('tells for each operation its summary, scope and statuses', () => {
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(methods)) {
        const described = operation as { summary?: string; tags?: string[] } & typeof operation;
        const where = `${method} ${path}`;
        expect([where, Boolean(described.summary), described.tags?.length]).toEqual([where, true, 1]);
        const statuses = Object.keys(operation.responses);
        // One good answer; what takes long may say so with 202.
        const good = statuses.filter((one) => /^2/.test(one));
        expect([where, good.filter((one) => good.length === 1 || one !== '202').length]).toEqual([where, 1]);
        if (!path.startsWith('/api/')) continue;
        const [scheme] = operation.security ?? [];
        expect([where, scheme && Object.keys(scheme)]).toEqual([
          where,
          scheme ? ['PersonalAPIKeyAuth'] : undefined,
        ]);
        const expected = scheme
          ? ['400', '401', '403', '404', '405', '413', '415', '429', '500', '503']
          : ['400', '429', '503'];
        expect([where, expected.filter((one) => !statuses.includes(one))]).toEqual([where, []]);
      }
    }
    expect(Object.keys(document.components.securitySchemes)).toEqual(['PersonalAPIKeyAuth']);
    expect(Object.keys(document.components.schemas)).toEqual(
      expect.arrayContaining(['Error', 'Organization', 'Project', 'User', 'PersonalApiKey']),
    );
  });

  test('tells what a destination of each type is configured with, and which keys are in no answer', () => {
    const body = (method: string, path = '') =>
      document.paths[`/api/projects/{project_id}/batch_exports/${path}`]?.[method]?.requestBody as {
        content: Record<string, { schema: { properties: { destination: { oneOf?: Variant[] } } } }>;
      };
    const destination = (...of: [string, string?]) =>
      body(...of).content['application/json']?.schema.properties.destination;
    const variants = destination('post')?.oneOf ?? [];
    const keys = variants.map(({ title, required, properties: { type, config } }) => [
      ...[title, type.enum.length, required.includes('config'), config.required],
      Object.keys(config.properties).filter((key) => config.properties[key]?.writeOnly),
    ]);
    expect(keys).toEqual([
      ['S3', 3, true, ['bucket_name', 'region', 'prefix'], ['aws_access_key_id', 'aws_secret_access_key']],
      ['AzureBlob', 1, true, ['container_name'], ['connection_string', 'account_key', 'sas_token']],
      [
        ...['GoogleCloudStorage', 1, true, ['bucket_name']],
        ['service_account_key', 'hmac_access_key', 'hmac_secret'],
      ],
      ['Postgres', 1, true, ['user', 'password', 'host', 'database'], ['user', 'password']],
      ['HTTP', 1, true, ['url', 'token'], ['token']],
      ['File', 1, true, ['directory'], []],
      ['NoOp', 1, false, undefined, []],
    ]);
    // What is stored need not be said again.
    for (const one of [destination('put', '{id}/'), destination('patch', '{id}/')])
      expect(one).not.toHaveProperty('oneOf');
  });

  test('tells which bodies may be left out, as the API sees it', async () => {
    const wanted: Record<string, boolean> = {};
    const given: Record<string, boolean> = {};
    for (const one of operations(api.app).filter(({ hasBody }) => hasBody)) {
      const body = document.paths[one.path]?.[one.method.toLowerCase()]?.requestBody as {
        required?: boolean;
      };
      const tenant = await api.createTenant('Without a body');
      await insertExportOf(api.pool, tenant);
      // Other routes of functions accept an empty body, and refuse what it selects.
      if (one.path.endsWith('/replay/')) await insertFunctionOf(api.pool, tenant);
      const ids = idsOf(tenant);
      if (one.path.includes('/persons/{id}/'))
        await insertPerson(api.pool, tenant.projectId, { id: ids.id, distinct_ids: ['u'] });
      if (one.path.includes('/feature_flags/{id}/')) {
        const flag = { key: 'a-flag', filters: EVERYBODY };
        ids.id = String(await storeFlag(api.pool, tenant.projectId, flag));
      }
      if (one.path.includes('/cohorts/{id}/')) {
        const cohort = { name: 'A cohort', isStatic: true };
        ids.id = String(await storeCohort(api.pool, tenant.projectId, cohort));
      }
      const owner = await api.pool.query('select user_id from personal_api_keys where id = $1', [ids.key_id]);
      const { value } = await api.createKey({ ...anna, userId: owner.rows[0].user_id });
      const key = one.path.startsWith('/ofrep/') ? tenant.projectToken : value;
      const answer = await api.request(key, one.method, fill(one.path, ids));
      wanted[`${one.method} ${one.path}`] = body.required === true;
      given[`${one.method} ${one.path}`] = answer.statusCode === 400;
    }
    expect(Object.values(wanted)).toContain(true);
    expect(wanted).toEqual(given);
  });

  test('is served as YAML, or as JSON to those who ask for it', async () => {
    const yaml = await api.request(null, 'GET', '/api/schema/');
    expect(yaml.headers['content-type']).toBe('application/vnd.oai.openapi; charset=utf-8');
    expect(YAML.parse(yaml.body)).toEqual(document);
    for (const [url, accept] of [
      ['/api/schema?format=json', '*/*'],
      ['/api/schema/', 'application/json'],
    ] as const) {
      const json = await api.request(null, 'GET', url, undefined, { accept });
      expect(json.headers['content-type']).toBe('application/vnd.oai.openapi+json; charset=utf-8');
      expect(json.json()).toEqual(document);
    }
    expect((await api.request(null, 'GET', '/api/schema/?format=xml')).statusCode).toBe(404);
    expect(
      (await api.request(null, 'GET', '/api/schema/?format=yaml', undefined, { accept: 'application/json' }))
        .headers['content-type'],
    ).toContain('openapi;');
    const page = await api.request(null, 'GET', '/api/schema/swagger-ui/');
    expect([page.statusCode, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers['content-security-policy']).toContain("default-src 'self'");
  });

  test('answers of the API have the form it promises', async () => {
    for (const one of operations(api.app).filter(({ method, isStream }) => method === 'GET' && !isStream)) {
      const answer = await api.request(anna, 'GET', fill(one.path, idsOf(anna)));
      expect([one.path, one.statuses.includes(answer.statusCode)]).toEqual([one.path, true]);
    }
  });
});

describe('a route without access', () => {
  async function bootWith(url: string, config: object): Promise<void> {
    const app = Fastify();
    app.setSerializerCompiler(serializerCompiler);
    await describeApi(app, { publicUrl: 'https://sluice.test', scopes: ['query:read'] });
    try {
      app.get(url, { config, schema: { response: { 200: z.object({}) } } }, async () => ({}));
      await app.ready();
    } finally {
      await app.close();
    }
  }

  test('stops the boot', async () => {
    await expect(bootWith('/api/secret_things/', {})).rejects.toThrow(
      "GET /api/secret_things/ declares no access: give it config.access with a scope, or 'public'",
    );
  });

  test('stops the boot too when no key can have its scope', async () => {
    await expect(bootWith('/api/secret_things/', { access: { scope: 'thing:read' } })).rejects.toThrow(
      "GET /api/secret_things/ asks for the scope thing:read, which is unknown: name it in a product's manifest",
    );
  });

  test('does not when it declares one, or is no management route', async () => {
    await bootWith('/api/secret_things/', { access: { scope: 'query:read' } });
    await bootWith('/api/open_things/', { access: 'public' });
    await bootWith('/_health_of_things', {});
  });
});

/** Reads the router's drawing of its tree: indentation gives the parents of each line. */
function routesOf(drawing: string): string[] {
  const routes: string[] = [];
  const parents: string[] = [];
  for (const line of drawing.split('\n')) {
    const match = /^([│├└─\s]*)(\S+)(?: \(([A-Z, ]+)\))?/.exec(line);
    if (!match) continue;
    const depth = (match[1] as string).length / 4;
    parents.length = depth;
    parents[depth] = match[2] as string;
    for (const method of (match[3] ?? '').split(', ')) {
      if (['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].includes(method))
        routes.push(`${method} ${parents.join('')}`);
    }
  }
  return routes;
}
