import type { FastifyReply, FastifyRequest } from 'fastify';
import { findMemberOrganization, type MemberOrganizationRow } from '../db/organizations.ts';
import { findCredential, type PersonalApiKeyRow, touchPersonalApiKey } from '../db/personal-api-keys.ts';
import type { Pool } from '../db/pool.ts';
import { findMemberProject, type MemberProjectRow } from '../db/projects.ts';
import type { UserRow } from '../db/users.ts';
import { isUuid } from '../db/uuid.ts';
import { ADMIN, type Level } from '../tenancy/levels.ts';
import { type Scope, scopeAllows } from '../tenancy/scopes.ts';
import { hashToken } from '../tenancy/tokens.ts';
import { errors } from './errors.ts';
import type { RateLimit } from './rate-limit.ts';

/** What a route of the management API asks of a caller; every route declares one, or the boot fails. */
export type Access =
  | 'public'
  | {
      /** The scope the key must have; `*` means an unlimited key: all scopes, not bound to projects or organizations. */
      scope: Scope | '*' | 'any';
      /** The least membership level in the organization of the path. */
      level?: Level;
      /** Also open to keys that are bound to projects or organizations, though the path names none. */
      ignoresBounds?: true;
    };

export interface Caller {
  user: UserRow;
  key: PersonalApiKeyRow;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
  }
  interface FastifyRequest {
    caller: Caller;
    /** The organization of the path; only on routes with `:organization_id`. */
    organization: MemberOrganizationRow;
    /** The project of the path; only on routes with `:project_id`. */
    project: MemberProjectRow;
  }
}

interface Candidate {
  token: string;
  place: string;
}

function fromHeader(request: FastifyRequest): Candidate | undefined {
  const match = /^Bearer\s+(\S+)\s*$/.exec(request.headers.authorization ?? '');
  return match ? { token: match[1] as string, place: 'request Authorization header' } : undefined;
}

function fromField(container: unknown, place: string): Candidate | undefined {
  const value = (container as Record<string, unknown> | null | undefined)?.personal_api_key;
  return typeof value === 'string' && value !== '' ? { token: value, place } : undefined;
}

/** A key in the body can only be read once the body is; everywhere else, nothing is parsed for a stranger. */
function findCandidate(request: FastifyRequest): Candidate | undefined {
  return (
    fromHeader(request) ??
    fromField(request.body, 'request body') ??
    fromField(request.query, 'request query string')
  );
}

const MAX_PROJECT_ID = 2 ** 31 - 1;

function projectIdOf(text: string, caller: Caller): number | undefined {
  if (text === '@current') return caller.user.current_project_id ?? undefined;
  const id = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return id >= 1 && id <= MAX_PROJECT_ID ? id : undefined;
}

function organizationIdOf(text: string, caller: Caller): string | undefined {
  if (text === '@current') return caller.user.current_organization_id ?? undefined;
  return isUuid(text) ? text.toLowerCase() : undefined;
}

/**
 * Decides whether a request may pass: who calls, what the key may do, whether the place in the path is one of the
 * caller's. A place that does not exist and one of somebody else get the same answer after the same query.
 */
export function createAccessControl(deps: { pool: Pool; rateLimit: RateLimit }) {
  const { pool, rateLimit } = deps;

  async function authenticate(candidate: Candidate): Promise<Caller> {
    const failed = () =>
      errors.authenticationFailed(`Personal API key found in ${candidate.place} is invalid.`);
    if (candidate.token.includes('\u0000')) throw failed();
    const credential = await findCredential(pool, hashToken(candidate.token));
    if (!credential) throw failed();
    return credential;
  }

  function requireScope(access: Exclude<Access, 'public'>, { key }: Caller): void {
    const bound = key.scoped_teams.length > 0 || key.scoped_organizations.length > 0;
    if (access.scope === 'any') return;
    if (access.scope === '*') {
      if (!key.scopes.includes('*')) throw errors.permissionDenied("API key missing required scope '*'");
      if (bound) {
        throw errors.permissionDenied(
          'API keys that are bound to projects or organizations cannot manage keys.',
        );
      }
    } else if (!scopeAllows(key.scopes, access.scope)) {
      throw errors.permissionDenied(`API key missing required scope '${access.scope}'`);
    }
  }

  /** The bounds of the key itself: decided from the path alone, before anything is looked up. */
  function requireWithinBounds(
    access: Exclude<Access, 'public'>,
    { key }: Caller,
    place: {
      project?: string | undefined;
      organization?: string | undefined;
      projectId?: number | undefined;
      organizationId?: string | undefined;
    },
  ): void {
    if (access.ignoresBounds) return;
    if (key.scoped_teams.length > 0) {
      if (place.project === undefined) {
        throw errors.permissionDenied(
          'API keys with scoped projects are only supported on project-based endpoints.',
        );
      }
      if (place.projectId === undefined || !key.scoped_teams.includes(place.projectId)) {
        throw errors.permissionDenied(
          `API key does not have access to the requested project: ID ${place.project}.`,
        );
      }
    }
    if (key.scoped_organizations.length > 0 && place.organization !== undefined) {
      if (place.organizationId === undefined || !key.scoped_organizations.includes(place.organizationId)) {
        throw errors.permissionDenied(
          `API key does not have access to the requested organization: ID ${place.organization}.`,
        );
      }
    }
  }

  function requireStanding(
    access: Exclude<Access, 'public'>,
    organization: { name: string; level: number; keysAllowed: boolean },
  ): void {
    if (!organization.keysAllowed && organization.level < ADMIN) {
      throw errors.permissionDenied(
        `Organization '${organization.name}' does not allow using personal API keys. Contact an admin to enable ` +
          'personal API keys for this organization.',
      );
    }
    if (access.level !== undefined && organization.level < access.level) {
      throw errors.permissionDenied('Your organization access level is insufficient.');
    }
  }

  /** Everything of `Access`, in the documented order. */
  async function control(
    access: Exclude<Access, 'public'>,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const candidate = findCandidate(request);
    if (!candidate) throw errors.notAuthenticated();
    const caller = await authenticate(candidate);
    request.caller = caller;
    const { project_id: project, organization_id: organization } = request.params as Record<
      string,
      string | undefined
    >;
    const projectId = project === undefined ? undefined : projectIdOf(project, caller);
    const organizationId = organization === undefined ? undefined : organizationIdOf(organization, caller);
    requireWithinBounds(access, caller, { project, organization, projectId, organizationId });
    requireScope(access, caller);

    if (organization !== undefined) {
      const found = organizationId && (await findMemberOrganization(pool, caller.user.id, organizationId));
      if (!found) throw errors.notFound('Organization not found.');
      requireStanding(access, {
        name: found.name,
        level: found.membership_level,
        keysAllowed: found.members_can_use_personal_api_keys,
      });
      request.organization = found;
    }
    if (project !== undefined) {
      const found = projectId && (await findMemberProject(pool, caller.user.id, projectId));
      const { scoped_organizations: bounds } = caller.key;
      if (!found || (bounds.length > 0 && !bounds.includes(found.organization_id))) {
        throw errors.notFound('Project not found.');
      }
      if (organization !== undefined && found.organization_id !== request.organization.id) {
        throw errors.notFound('Project not found.');
      }
      requireStanding(access, {
        name: found.organization_name,
        level: found.membership_level,
        keysAllowed: found.members_can_use_personal_api_keys,
      });
      request.project = found;
    }
    await rateLimit.consume(caller.key.id, reply);
    touch(caller.key, request);
  }

  function touch(key: PersonalApiKeyRow, request: FastifyRequest): void {
    const hour = 3_600_000;
    if (key.last_used_at && Date.now() - Date.parse(key.last_used_at) < hour) return;
    touchPersonalApiKey(pool, key.id).catch((error) =>
      request.log.warn({ err: error }, 'last use not recorded'),
    );
  }

  return {
    /** With a key in the header, a stranger is refused before a byte of the body is read. */
    async onRequest(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const { access } = request.routeOptions.config;
      if (access === undefined || access === 'public') return;
      const bodyMayHoldKey = !fromHeader(request) && request.headers['content-type'] !== undefined;
      if (!bodyMayHoldKey) await control(access, request, reply);
    },
    /** A key in the body can only be read once the body is. */
    async preValidation(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const { access } = request.routeOptions.config;
      if (access === undefined || access === 'public' || request.caller) return;
      await control(access, request, reply);
    },
  };
}
