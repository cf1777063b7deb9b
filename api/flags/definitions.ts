import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { findMemberProject, findProjectByToken, type MemberProjectRow } from '../../db/projects.ts';
import { admitsKeys, isWithin, tokenIn, wrongToken } from '../access.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { errorBody, freeForm } from '../fields.ts';
import { DEFINITION_PATHS, wantsCohorts } from './definition-answers.ts';
import type { Flags } from './dependencies.ts';
import { FLAGS_PREFIX } from './feature-flags.ts';

const TAGS = ['feature flags'];
const READ = 'feature_flag:read';

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
    } = await flags.definitionAnswers.answer(request, projectId, { hasCohorts: wantsCohorts(request.raw) });
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
    send_cohorts: z.string().optional().meta({
      description:
        'Send cohorts. `/flags/definitions` always does. Without it, conditions that only name a cohort ask about its properties instead.',
    }),
  });
  const schema = {
    tags: TAGS,
    querystring,
    description:
      'The key is a personal one, or the secret token of the project. The answer has an `ETag`. Sent back as `If-None-Match`, it gets 304 as long as no definition has changed.',
    response: { 200: answer, 402: errorBody },
  };
  for (const path of DEFINITION_PATHS) {
    app.get(
      path,
      {
        config: { access: { scope: READ, ignoresBounds: true, forSdks: true } },
        schema: { ...schema, summary: 'The definitions of flags, for SDKs that evaluate them' },
      },
      async (request, reply) => {
        const { id } = await projectOf(request);
        // Without a token, a member may mean another project at any time.
        if (request.secretOf || tokenIn(request)) flags.definitionAnswers.admitted.note(request.raw, id);
        return send(request, reply, id);
      },
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
