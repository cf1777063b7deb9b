import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { findMemberProject, findProjectByToken, type MemberProjectRow } from '../../db/projects.ts';
import { localDefinitions } from '../../flags/local-definitions.ts';
import { admitsKeys, isWithin, tokenIn, wrongToken } from '../access.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { ApiError, errors } from '../errors.ts';
import { errorBody, freeForm } from '../fields.ts';
import { type Packed, packed, packedAnswer } from '../public/packed.ts';
import type { Flags } from './dependencies.ts';
import { FLAGS_PREFIX } from './feature-flags.ts';

const TAGS = ['feature flags'];
const READ = 'feature_flag:read';
/** SDKs ask again with the ETag, and get 304 as long as nothing has changed. */
const CACHE = 'private, must-revalidate';
const MOST_KEPT = 500;

/** SDKs let go of their definitions then. */
const quotaExceeded = () =>
  new ApiError(402, {
    type: 'quota_limited',
    code: 'payment_required',
    detail: 'You have exceeded your feature flag request quota',
    attr: null,
  });

const answer = z
  .object({
    flags: z.array(freeForm),
    group_type_mapping: z.record(z.string(), z.string()),
    cohorts: freeForm,
  })
  .meta({ id: 'FlagDefinitions' });

/** Adds the routes by which server SDKs get definitions, to evaluate flags by themselves. */
export function flagDefinitionRoutes(
  app: App,
  { pool, flags }: Pick<ApiDependencies, 'pool'> & { flags: Flags },
): void {
  /** The bodies of projects. One is made anew only when a definition has changed. */
  const bodies = new Map<number, { revision: number; body: Promise<Packed> }>();

  async function bodyOf(projectId: number): Promise<Packed> {
    const project = await flags.definitions.of(projectId);
    if (!project) throw errors.notFound();
    if (!(await flags.metered.takeDefinitions(project))) throw quotaExceeded();
    let known = bodies.get(projectId);
    if (known?.revision !== project.revision) {
      known = { revision: project.revision, body: packed(localDefinitions(project)) };
      if (bodies.size >= MOST_KEPT) bodies.delete(bodies.keys().next().value as number);
      bodies.set(projectId, known);
    }
    return known.body;
  }

  async function send(
    request: FastifyRequest,
    reply: FastifyReply,
    projectId: number,
  ): Promise<FastifyReply> {
    const {
      status,
      body,
      headers = [],
      vary,
    } = packedAnswer(request, await bodyOf(projectId), 'application/json', CACHE);
    for (let index = 0; index < headers.length; index += 2) {
      reply.header(headers[index] as string, headers[index + 1] as string);
    }
    if (vary) reply.header('vary', vary);
    return reply.code(status).send(body);
  }

  /** The project whose public key the request names. The caller must be a member, within the bounds of the key. */
  async function projectOf(request: FastifyRequest): Promise<Pick<MemberProjectRow, 'id'>> {
    const { caller, secretOf } = request;
    if (secretOf) return secretOf;
    const token = tokenIn(request);
    const { user, key } = caller;
    const id = token ? (await findProjectByToken(pool, token))?.id : (user.current_project_id ?? undefined);
    if (token && id === undefined) throw wrongToken();
    const project = id === undefined ? undefined : await findMemberProject(pool, user.id, id);
    const mayUse =
      project &&
      isWithin(key, project) &&
      admitsKeys({ level: project.membership_level, keysAllowed: project.members_can_use_personal_api_keys });
    if (!mayUse) throw errors.permissionDenied('The API key does not have access to this project.');
    return project;
  }

  const querystring = z.object({
    token: z.string().max(200).optional().meta({
      description: "The project's public key. Without it, the caller's current project is meant.",
    }),
    send_cohorts: z.string().optional().meta({ description: 'Cohorts are always sent.' }),
  });
  const schema = {
    tags: TAGS,
    querystring,
    description:
      'The key is a personal one, or the secret token of the project. The answer has an `ETag`. Sent back as `If-None-Match`, it gets 304 as long as no definition has changed.',
    response: { 200: answer, 402: errorBody },
  };
  for (const path of ['/flags/definitions', '/api/feature_flag/local_evaluation/']) {
    app.get(
      path,
      {
        config: { access: { scope: READ, ignoresBounds: true, forSdks: true } },
        schema: { ...schema, summary: 'The definitions of flags, for SDKs that evaluate them' },
      },
      async (request, reply) => send(request, reply, (await projectOf(request)).id),
    );
  }
  app.get(
    `${FLAGS_PREFIX}local_evaluation/`,
    {
      config: { access: { scope: READ, forSdks: true } },
      schema: {
        ...schema,
        summary: 'The definitions of flags of a project, for SDKs that evaluate them',
        params: z.object({ project_id: z.string() }),
      },
    },
    async (request, reply) => send(request, reply, (request.secretOf ?? request.project).id),
  );
}
