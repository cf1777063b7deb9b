import swagger from '@fastify/swagger';
import swaggerUi from '@fastify/swagger-ui';
import type { FastifyInstance, RouteOptions } from 'fastify';
import { jsonSchemaTransform, jsonSchemaTransformObject } from 'fastify-type-provider-zod';
import { scopesOf } from './access.ts';
import { errors } from './errors.ts';
import { errorBody } from './fields.ts';
import { validatorCompiler } from './validation.ts';

const DOCUMENTATION = '/api/schema/';
const LOGO = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="40" viewBox="0 0 120 40">' +
    '<path d="M6 8v24M16 8v24M6 20q5-6 10 0" stroke="#7dd3fc" stroke-width="3" fill="none"/>' +
    '<text x="26" y="28" font-family="sans-serif" font-size="22" fill="#fff">Sluice</text></svg>',
);

/** Describes the error answers that a route may give. */
const REFUSALS: Record<number, string> = {
  400: 'The request is malformed, or a field is not valid.',
  401: 'The key is missing or not valid.',
  403: 'The key, or the user that it belongs to, may not do this.',
  404: 'The resource does not exist, or the caller may not see it.',
  405: 'The path does not support this method. `Allow` lists the methods that it supports.',
  413: 'The body is too large.',
  415: 'The body is neither JSON nor a form.',
  429: 'Too many requests. `Retry-After` says how many seconds to wait.',
  500: 'An unexpected error of the server.',
  503: 'The database or another service is not available. `Retry-After` says how many seconds to wait.',
};

/** A managed route that does not say who may call it, or asks for a scope that no key can have, is never served. */
function requireAccess(route: RouteOptions, scopes: readonly string[]): void {
  if (!route.url.startsWith('/api/') || route.url.startsWith(DOCUMENTATION)) return;
  const access = route.config?.access;
  if (access === undefined) {
    throw new Error(
      `${route.method} ${route.url} declares no access: give it config.access with a scope, or 'public'`,
    );
  }
  if (access === 'public') return;
  const unknown = scopesOf(access).find((scope) => !scopes.includes(scope));
  if (unknown !== undefined) {
    throw new Error(
      `${route.method} ${route.url} asks for the scope ${unknown}, which is unknown: name it in a product's manifest`,
    );
  }
}

function document(route: RouteOptions): void {
  const access = route.config?.access;
  if (access === undefined || route.schema?.hide) return;
  const isPublic = access === 'public';
  const hasParameters = route.url.includes(':');
  const statuses = Object.keys(REFUSALS)
    .map(Number)
    .filter((status) => !isPublic || ![401, 403].includes(status))
    .filter((status) => status !== 404 || hasParameters || !isPublic);
  const responses = Object.fromEntries(statuses.map((status) => [status, errorBody]));
  route.schema = {
    ...route.schema,
    response: { ...responses, ...(route.schema?.response as object | undefined) },
    ...(isPublic ? {} : { security: [{ PersonalAPIKeyAuth: scopesOf(access) }] }),
  };
}

function wantsJson(request: { query: unknown; headers: { accept?: string | undefined } }): boolean {
  const { format } = (request.query ?? {}) as { format?: unknown };
  if (format !== undefined && format !== 'json' && format !== 'yaml') throw errors.notFound();
  return format === 'json' || (format === undefined && (request.headers.accept ?? '').includes('json'));
}

type Transform = Parameters<typeof jsonSchemaTransformObject>[0];

interface Described {
  responses?: Record<string, { description?: string }>;
  requestBody?: {
    required?: boolean;
    content: Record<string, { schema?: BodySchema }>;
  };
}

interface BodySchema {
  type?: string;
  properties?: object;
  required?: string[];
  minProperties?: number;
  anyOf?: BodySchema[];
}

/** Marks a body as optional if all its fields are, and adds forms as a second content type. */
function describeBody({ requestBody }: Described): void {
  const given = requestBody?.content['application/json']?.schema;
  const isNullable = given?.anyOf?.some(({ type }) => type === 'null') ?? false;
  const schema = isNullable ? given?.anyOf?.find(({ properties }) => properties) : given;
  if (!requestBody || !schema?.properties) return;
  // A schema with `anyOf` or `minProperties` needs at least one of its fields.
  requestBody.required =
    (schema.required ?? []).length > 0 || schema.anyOf !== undefined || (schema.minProperties ?? 0) > 0;
  requestBody.content['application/x-www-form-urlencoded'] = { schema };
}

/** Describes each answer in a sentence, and each body in every form that it may have. */
function transformObject(input: Transform): ReturnType<typeof jsonSchemaTransformObject> {
  const result = jsonSchemaTransformObject(input);
  const { paths } = result as { paths?: Record<string, Record<string, Described>> };
  for (const operation of Object.values(paths ?? {}).flatMap((path) => Object.values(path))) {
    describeBody(operation);
    for (const [status, response] of Object.entries(operation.responses ?? {})) {
      response.description = REFUSALS[Number(status)] ?? 'The request succeeded.';
    }
  }
  return result;
}

/** Makes an OpenAPI 3.1 document from the schemas of all routes that come after this. */
export async function describeApi(
  app: FastifyInstance,
  { publicUrl, scopes }: { publicUrl: string; scopes: readonly string[] },
): Promise<void> {
  app.setValidatorCompiler(validatorCompiler);
  app.addHook('onRoute', (route) => {
    requireAccess(route, scopes);
    document(route);
  });
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Sluice',
        version: '0.1.0',
        description:
          'Stores product events and exports them in durable batches. Requests to the management API carry a personal ' +
          'API key as a bearer token. Requests that send events carry the project key, usually in the body.',
      },
      servers: [{ url: publicUrl }],
      components: {
        securitySchemes: {
          PersonalAPIKeyAuth: { type: 'http', scheme: 'bearer', description: 'A personal API key, `phx_…`.' },
        },
      },
    },
    transform: jsonSchemaTransform,
    transformObject,
  });
}

/** Serves the document at /api/schema/ and a page to browse it. */
export async function serveDocumentation(app: FastifyInstance): Promise<void> {
  await app.register(swaggerUi, {
    routePrefix: '/api/schema/swagger-ui',
    staticCSP: true,
    theme: { title: 'Sluice API' },
    logo: { type: 'image/svg+xml', content: LOGO, href: DOCUMENTATION },
    uiConfig: { deepLinking: true, docExpansion: 'none' },
  });
  // The document has hundreds of kilobytes and never changes, so it is written once.
  const texts: { json?: Buffer; yaml?: Buffer } = {};
  app.get(DOCUMENTATION, { schema: { hide: true } as { hide: true } }, async (request, reply) => {
    if (wantsJson(request)) {
      texts.json ??= Buffer.from(JSON.stringify(app.swagger()));
      return reply.type('application/vnd.oai.openapi+json; charset=utf-8').send(texts.json);
    }
    texts.yaml ??= Buffer.from(app.swagger({ yaml: true }));
    return reply.type('application/vnd.oai.openapi; charset=utf-8').send(texts.yaml);
  });
}
