import type { FastifyReply, FastifyRequest } from 'fastify';
import {
  type CurrentPlace,
  findCurrentPlace,
  findMemberOrganization,
  type MemberOrganizationRow,
} from '../db/organizations.ts';
import {
  findCredential,
  hasPersonalApiKey,
  type PersonalApiKeyRow,
  touchPersonalApiKey,
} from '../db/personal-api-keys.ts';
import type { Pool } from '../db/pool.ts';
import { findProjectBySecret, type SecretProjectRow } from '../db/project-secrets.ts';
import { findMemberProject, findProjectByToken, type MemberProjectRow } from '../db/projects.ts';
import type { Turns } from '../db/turns.ts';
import type { UserRow } from '../db/users.ts';
import type { Sight } from '../tenancy/actor.ts';
import { ADMIN, type Level } from '../tenancy/levels.ts';
import { type Scope, scopeAllows } from '../tenancy/scopes.ts';
import { hashToken } from '../tenancy/tokens.ts';
import { isUuid } from '../values/uuid.ts';
import { clientSignal } from './asker.ts';
import { type Candidate, findCandidate, fromHeader, fromQuery, withoutKey } from './credentials.ts';
import { errors } from './errors.ts';
import type { KnownKeys } from './known-keys.ts';
import type { RateLimit } from './rate-limit.ts';

/** Who may call a route of the management API. Every route declares this, or the process does not start. */
export type Access =
  | 'public'
  | {
      /**
       * The scope that the key must have. `*` asks for an unlimited key, which has all scopes and no bounds. `any` asks
       * for none.
       */
      scope: Scope | '*' | 'any';
      /** More scopes that the key must have, each of them. */
      andScopes?: readonly Scope[];
      /** The lowest membership level that may call the route. */
      level?: Level;
      /** Admits keys that are bound to projects or organizations, although the path names neither. */
      ignoresBounds?: true;
      /** Uses the caller's current organization, as if the path named `@current`. */
      inCurrentOrganization?: true;
      /**
       * The route is about the organization itself and not about something in it. This changes the sentence of the 404.
       */
      isOrganization?: true;
      /**
       * Admits keys that are bound to projects, under the path of an organization. The route shows them these projects
       * only.
       */
      narrowsToProjects?: true;
      /** Counts the requests in a separate budget. */
      budget?: 'wizard';
      /**
       * SDKs call the route. It admits the secret token of a project (`phs_…`) instead of a personal key.
       */
      forSdks?: true;
    };
type Managed = Exclude<Access, 'public'>;

/** The scopes that a key must have for a route, each of them. */
export const scopesOf = ({ scope, andScopes = [] }: Managed): (Scope | '*')[] =>
  scope === 'any' ? [] : [scope, ...andScopes];

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
    /** The project whose secret token the request shows. Then there is no caller. Only on routes with `forSdks`. */
    secretOf?: SecretProjectRow;
    /** The hash of the key that the request shows, valid or not. */
    keyHash?: string;
    /** The organization of the path; only on routes with `:organization_id` or `inCurrentOrganization`. */
    organization: MemberOrganizationRow;
    /** The project of the path; only on routes with `:project_id`. */
    project: MemberProjectRow;
    /** Gives the turn of the request to others before it is answered. For an answer that has no end in sight. */
    leaveTurn(): void;
    /** Checks again, while an answer is under way, that the caller may have it. Throws if not. It counts as no request. */
    checkAgain(): Promise<void>;
  }
}

const MAX_PROJECT_ID = 2 ** 31 - 1;
/** How secret tokens of projects begin. */
const SECRET = 'phs_';
/** Public keys are not longer. */
const LONGEST_TOKEN = 64;
/** The most bytes of a body that is read although nothing before it shows a key. */
const LARGEST_WITHOUT_KEY = 64 * 1024;

/** Returns whether a body says that it is small. One that comes in pieces does not say how large it is. */
const isSmall = ({ headers }: FastifyRequest): boolean =>
  headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= LARGEST_WITHOUT_KEY;

/** Nobody has the public key that a request names. */
export const wrongToken = () =>
  errors.authenticationFailed(
    'The provided API key is invalid or has expired. Please check your API key and try again.',
  );

/** The public key of a project in the query of a request. */
export function tokenIn({ query }: FastifyRequest): string | undefined {
  const { token } = (query ?? {}) as { token?: unknown };
  return typeof token === 'string' && token.trim() !== '' ? token.trim() : undefined;
}

const NOWHERE: CurrentPlace = { organization_id: null, project_id: null };

function projectIdOf(text: string, current: CurrentPlace): number | undefined {
  if (text === '@current') return current.project_id ?? undefined;
  const id = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  return id >= 1 && id <= MAX_PROJECT_ID ? id : undefined;
}

function organizationIdOf(text: string, current: CurrentPlace): string | undefined {
  if (text === '@current') return current.organization_id ?? undefined;
  return isUuid(text) ? text.toLowerCase() : undefined;
}

/** Refuses a place outside the bounds of the key. The answer is the same whether the place exists or not. */
const outside = (kind: 'project' | 'organization', id: string) =>
  errors.permissionDenied(`API key does not have access to the requested ${kind}: ID ${id}.`);

/** Refuses keys that lack a scope which a body asks for, beside those of its route. */
export function requireScope({ key }: Caller, scope: Scope): void {
  if (!scopeAllows(key.scopes, scope)) {
    throw errors.permissionDenied(`API key missing required scope '${scope}'`);
  }
}

/** Refuses keys that lack the scope `*` or have bounds. Only an unlimited key may manage keys. */
export function requireUnlimited(key: PersonalApiKeyRow): void {
  if (!key.scopes.includes('*')) throw errors.permissionDenied("API key missing required scope '*'");
  if (key.scoped_teams.length > 0 || key.scoped_organizations.length > 0) {
    throw errors.permissionDenied('API keys that are bound to projects or organizations cannot manage keys.');
  }
}

/** What a key may see. An empty list sets no bound. */
export const boundsOf = ({ scoped_teams, scoped_organizations }: PersonalApiKeyRow): Sight => ({
  projects: scoped_teams,
  organizations: scoped_organizations,
});

/** Answers whether a project is within the bounds of a key. */
export function isWithin(key: PersonalApiKeyRow, project: { id: number; organization_id: string }): boolean {
  const { projects, organizations } = boundsOf(key);
  return (
    (projects.length === 0 || projects.includes(project.id)) &&
    (organizations.length === 0 || organizations.includes(project.organization_id))
  );
}

/** The organization as a bound key sees it: with the projects that it may use. Undefined: it may use none of it. */
export function narrow<T extends MemberOrganizationRow>(key: PersonalApiKeyRow, row: T): T | undefined {
  const { projects, organizations } = boundsOf(key);
  if (organizations.length > 0 && !organizations.includes(row.id)) return undefined;
  const visible = row.projects.filter((one) => isWithin(key, one));
  return projects.length > 0 && visible.length === 0 ? undefined : { ...row, projects: visible };
}

/** Answers whether an organization lets a member use personal API keys. */
export const admitsKeys = (organization: { level: number; keysAllowed: boolean }): boolean =>
  organization.keysAllowed || organization.level >= ADMIN;

/**
 * Decides whether a request may pass: who the caller is, what the key may do, and whether the caller is a member of the
 * organization or project in the path. For a place that does not exist and for a place of somebody else, the query and
 * the answer are the same, so a caller cannot tell them apart.
 */
export function createAccessControl(deps: {
  pool: Pool;
  rateLimit: RateLimit;
  knownKeys: KnownKeys;
  turns: Turns;
}) {
  const { pool, rateLimit, knownKeys, turns } = deps;

  async function authenticate({ token, place }: Candidate, hash: string): Promise<Caller> {
    const failed = () => errors.authenticationFailed(`Personal API key found in ${place} is invalid.`);
    // A secret token is right elsewhere, so it must not be remembered as wrong.
    if (token.startsWith(SECRET) || token.includes('\u0000') || knownKeys.isWrong(hash)) throw failed();
    const credential = await findCredential(pool, hash);
    if (!credential) {
      // A key that has expired, or whose user is not active, may work again.
      knownKeys.noteWrong(hash, { isNobodys: !(await hasPersonalApiKey(pool, hash)) });
      throw failed();
    }
    knownKeys.noteRight(hash, `user ${credential.user.id}`);
    return credential;
  }

  /**
   * Waits until it is the request's turn. A sender has a few requests at work at once, so one that sends many leaves the
   * connections to Postgres, and the memory for bodies, to others.
   */
  async function takeTurn(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const candidate = fromHeader(request) ?? fromQuery(request);
    const hash = candidate && hashToken(candidate.token);
    const signal = clientSignal(reply);
    const leave = await turns.enter(knownKeys.sender(hash, request.ip), signal);
    request.leaveTurn = leave;
    reply.raw.once('close', leave);
    reply.raw.once('finish', leave);
    if (signal.aborted) leave();
  }

  function requireScopes(access: Managed, caller: Caller): void {
    const { key } = caller;
    if (access.scope === '*') requireUnlimited(key);
    else {
      for (const scope of scopesOf(access) as Scope[]) requireScope(caller, scope);
    }
  }

  /**
   * Checks the bounds of the key by the path alone, before the place is looked up. Whether a project belongs to one of
   * the key's organizations is known after that.
   */
  function requireWithinBounds(
    access: Managed,
    { key }: Caller,
    place: {
      project?: string | undefined;
      organization?: string | undefined;
      projectId?: number | undefined;
      organizationId?: string | undefined;
    },
  ): void {
    if (access.ignoresBounds) return;
    const narrowed = access.narrowsToProjects && place.project === undefined;
    if (key.scoped_teams.length > 0 && !narrowed) {
      if (place.project === undefined) {
        throw errors.permissionDenied(
          'API keys with scoped projects are only supported on project-based endpoints.',
        );
      }
      if (place.projectId === undefined || !key.scoped_teams.includes(place.projectId)) {
        throw outside('project', place.project);
      }
    }
    if (key.scoped_organizations.length > 0 && place.organization !== undefined) {
      if (place.organizationId === undefined || !key.scoped_organizations.includes(place.organizationId)) {
        throw outside('organization', place.organization);
      }
    }
  }

  function requireStanding(
    access: Managed,
    organization: { name: string; level: number; keysAllowed: boolean },
  ): void {
    if (!admitsKeys(organization)) {
      throw errors.permissionDenied(
        `Organization '${organization.name}' does not allow using personal API keys. Contact an admin to enable ` +
          'personal API keys for this organization.',
      );
    }
    if (access.level !== undefined && organization.level < access.level) {
      throw errors.permissionDenied('Your organization access level is insufficient.');
    }
  }

  /** Finds the project of the public key that the query names. */
  async function projectOfToken(token: string): Promise<number> {
    const found = token.length > LONGEST_TOKEN ? undefined : await findProjectByToken(pool, token);
    if (!found) throw wrongToken();
    return found.id;
  }

  /** Checks a request that shows the secret token of a project. It may ask for this project only. */
  async function admitSecret(
    { token }: Candidate,
    hash: string,
    request: FastifyRequest,
    reply: FastifyReply,
  ): Promise<void> {
    const failed = () => errors.authenticationFailed('Secret API token is invalid.');
    if (token.includes('\u0000') || knownKeys.isWrong(hash)) throw failed();
    const found = await findProjectBySecret(pool, hash);
    if (!found) {
      knownKeys.noteWrong(hash, { isNobodys: true });
      throw failed();
    }
    knownKeys.noteRight(hash, `project ${found.id}`);
    const { project_id: place } = request.params as { project_id?: string };
    const named = tokenIn(request);
    const isOther =
      (place !== undefined && place !== '@current' && projectIdOf(place, NOWHERE) !== found.id) ||
      (named !== undefined && named !== found.api_token && (await projectOfToken(named)) !== found.id);
    if (isOther) throw errors.permissionDenied('The secret API token belongs to another project.');
    request.secretOf = found;
    await rateLimit.consume('key', `project ${found.id}`, reply);
  }

  /** Checks everything that `Access` declares, in the documented order, and counts the request. */
  async function control(access: Managed, request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const candidate = findCandidate(request);
    if (!candidate) throw errors.notAuthenticated();
    const hash = hashToken(candidate.token);
    knownKeys.admit(hash, request.ip);
    request.keyHash = hash;
    if (access.forSdks && candidate.token.startsWith(SECRET)) {
      await admitSecret(candidate, hash, request, reply);
      return;
    }
    request.checkAgain = () => check(access, request, candidate, hash);
    await request.checkAgain();
    const { caller } = request;
    if (access.budget === 'wizard') await rateLimit.consume('wizard', String(caller.user.id), reply);
    else await rateLimit.consume('key', caller.key.id, reply);
    touch(caller.key, request);
  }

  /** Finds out who the caller of a request is, and checks that the key and its user may do it. */
  async function check(
    access: Managed,
    request: FastifyRequest,
    candidate: Candidate,
    hash: string,
  ): Promise<void> {
    const caller = await authenticate(candidate, hash);
    request.caller = caller;
    const params = request.params as { project_id?: string; organization_id?: string };
    const project = params.project_id;
    const organization = access.inCurrentOrganization ? '@current' : params.organization_id;
    const current =
      project === '@current' || organization === '@current'
        ? await findCurrentPlace(pool, caller.user.id, boundsOf(caller.key))
        : NOWHERE;
    // The public key of a project in the query says which project `@current` is.
    const named = project === '@current' ? tokenIn(request) : undefined;
    const projectId =
      named !== undefined
        ? await projectOfToken(named)
        : project === undefined
          ? undefined
          : projectIdOf(project, current);
    const organizationId = organization === undefined ? undefined : organizationIdOf(organization, current);
    requireWithinBounds(access, caller, { project, organization, projectId, organizationId });
    requireScopes(access, caller);

    if (project !== undefined) {
      const found = projectId && (await findMemberProject(pool, caller.user.id, projectId));
      // Like one that is bound to projects, the key does not tell which other projects exist.
      const isBound = caller.key.scoped_organizations.length > 0;
      if (isBound && !(found && isWithin(caller.key, found))) throw outside('project', project);
      if (!found && named !== undefined) {
        throw errors.permissionDenied('The API key does not have access to this project.');
      }
      if (!found) throw errors.notFound('Project not found.');
      if (organization !== undefined && found.organization_id !== organizationId) {
        // Nor does a key that is bound to projects tell which organizations its user belongs to.
        if (caller.key.scoped_teams.length > 0) throw outside('organization', organization);
        throw errors.notFound('Project not found.');
      }
      requireStanding(access, {
        name: found.organization_name,
        level: found.membership_level,
        keysAllowed: found.members_can_use_personal_api_keys,
      });
      request.project = found;
    }
    if (organization !== undefined) {
      const found = organizationId && (await findMemberOrganization(pool, caller.user.id, organizationId));
      if (!found) {
        const itself = access.isOrganization && organization !== '@current';
        throw errors.notFound(itself ? 'Not found.' : 'Organization not found.');
      }
      requireStanding(access, {
        name: found.name,
        level: found.membership_level,
        keysAllowed: found.members_can_use_personal_api_keys,
      });
      request.organization = found;
    }
  }

  const touching = new Set<Promise<void>>();

  function touch(key: PersonalApiKeyRow, request: FastifyRequest): void {
    const hour = 3_600_000;
    if (key.last_used_at && Date.now() - Date.parse(key.last_used_at) < hour) return;
    const work = touchPersonalApiKey(pool, key.id)
      .catch((error) => request.log.warn({ err: error }, 'the last use of a key was not recorded'))
      .finally(() => touching.delete(work));
    touching.add(work);
  }

  return {
    /** Checks a request before its body is read, unless the key may be in the body. */
    async onRequest(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const { access } = request.routeOptions.config;
      if (access === undefined) return;
      const bodyMayHoldKey =
        access !== 'public' && !fromHeader(request) && request.headers['content-type'] !== undefined;
      // Whoever sends a large body shows the key before it. Otherwise strangers decide what is read into memory.
      if (bodyMayHoldKey && !fromQuery(request) && !isSmall(request)) throw errors.notAuthenticated();
      await takeTurn(request, reply);
      if (access === 'public') await rateLimit.consume('address', request.ip, reply);
      else if (!bodyMayHoldKey) await control(access, request, reply);
    },
    /** Checks a request whose key may be in the body, after the body is parsed. */
    async preValidation(request: FastifyRequest, reply: FastifyReply): Promise<void> {
      const { access } = request.routeOptions.config;
      if (access !== undefined && access !== 'public' && !request.caller && !request.secretOf) {
        await control(access, request, reply);
      }
      request.body = withoutKey(request.body);
    },
    /** Counts an answer that refuses the request. */
    onResponse(request: FastifyRequest, reply: FastifyReply): void {
      if (request.keyHash) knownKeys.noteAnswer(reply.statusCode, request.keyHash, request.ip);
    },
    /** Waits until the last use of every key is recorded. */
    async finish(): Promise<void> {
      await Promise.all(touching);
    },
    /** Returns whether the caller is unknown. A stranger must not learn whether a body is too large or malformed. */
    isStranger(request: FastifyRequest): boolean {
      const { access } = request.routeOptions.config;
      return access !== undefined && access !== 'public' && !request.caller && !request.secretOf;
    },
  };
}
