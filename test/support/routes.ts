import type { App } from '../../api/dependencies.ts';
import type { Tenant } from './api.ts';

/** One operation of the API as its own OpenAPI document tells of it. */
export interface Operation {
  method: string;
  /** As in the document, `/api/projects/{project_id}/`. */
  path: string;
  /** The scope it asks for; undefined for public ones, `any` when any key will do. */
  scope: string | undefined;
  /** All scopes it asks for, each of them. */
  scopes: string[];
  statuses: number[];
  hasBody: boolean;
  /** Whether the answer has no end in sight. Whoever takes it has to leave. */
  isStream: boolean;
}

interface Described {
  security?: Record<string, string[]>[];
  responses: Record<string, { content?: Record<string, unknown> }>;
  requestBody?: unknown;
}

export interface OpenApiDocument {
  openapi: string;
  paths: Record<string, Record<string, Described>>;
  components: { schemas: Record<string, unknown>; securitySchemes: Record<string, unknown> };
}

export function documentOf(app: App): OpenApiDocument {
  return app.swagger() as unknown as OpenApiDocument;
}

export function operations(app: App): Operation[] {
  return Object.entries(documentOf(app).paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      method: method.toUpperCase(),
      path,
      scope: described.security?.[0] && (described.security[0].PersonalAPIKeyAuth?.[0] ?? 'any'),
      scopes: described.security?.[0]?.PersonalAPIKeyAuth ?? [],
      statuses: Object.keys(described.responses).map(Number),
      hasBody: described.requestBody !== undefined,
      isStream: described.responses['200']?.content?.['text/event-stream'] !== undefined,
    })),
  );
}

/** The operations that need a key. */
export const managed = (app: App) => operations(app).filter((one) => one.scope !== undefined);

export interface Ids {
  organization_id: string;
  project_id: string | number;
  user_uuid: string;
  user_id: string;
  key_id: string;
  /** An event, person, group or batch export: of a tenant whose test stored one, by nearly the uuid of the user. */
  id: string;
  /** A run and a backfill of the batch export. */
  run_id: string;
  backfill_id: string;
  /** A revision of a function. */
  version: string;
  /** An invocation of a function. */
  invocation_id: string;
  /** A replay of a function. */
  replay_id: string;
  /** A gradual rollout of a flag. */
  rollout_id: string;
  /** A query in the background. */
  query_id: string;
  /** The project's public key, where it stands in the path. */
  token?: string;
  /** A picture of a service. */
  file?: string;
  /** A file of posthog-js, and where it has the same place, a version of it. */
  name?: string;
  script?: string;
  /** The key of a feature flag. */
  key?: string;
}

/** Another uuid that only this one leads to. */
const near = (uuid: string, digit: string, otherwise: string) =>
  uuid.replace(/.$/, (last) => (last === digit ? otherwise : digit));

export const idsOf = (tenant: Tenant): Ids => ({
  organization_id: tenant.organizationId,
  project_id: tenant.projectId,
  user_uuid: tenant.userUuid,
  user_id: tenant.userUuid,
  key_id: tenant.keyId,
  id: near(tenant.userUuid, '0', '1'),
  run_id: near(tenant.userUuid, '2', '3'),
  backfill_id: near(tenant.userUuid, '4', '5'),
  version: '718293',
  invocation_id: near(tenant.userUuid, '6', '7'),
  replay_id: near(tenant.userUuid, '8', '9'),
  rollout_id: near(tenant.userUuid, 'a', 'b'),
  query_id: near(tenant.userUuid, 'c', 'd'),
  token: tenant.projectToken,
  file: 'slack.svg',
  name: 'array.js',
  script: 'array.js',
  key: 'some-flag',
});

/** The path of an operation with these ids in it; fails for a parameter that no test has an id for yet. */
export function fill(path: string, ids: Ids): string {
  return path.replaceAll(/\{(\w+)\}/g, (_match, name: string) => {
    const id = (ids as unknown as Record<string, string | number | undefined>)[name];
    if (id === undefined) throw new Error(`${path}: test/support/routes.ts has no id for {${name}}`);
    return String(id);
  });
}
