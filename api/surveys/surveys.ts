import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { mapInTurns } from '../../db/loop-turns.ts';
import { createFlagIn } from '../../flags/commands/create.ts';
import type { FlagChangeDependencies } from '../../flags/commands/dependencies.ts';
import { changeLinkedFlag } from '../../flags/commands/linked-flags.ts';
import { findFlag } from '../../flags/rows/flags.ts';
import {
  changeSurvey,
  createSurvey,
  removeSurvey,
  type SurveyFlags,
} from '../../surveys/commands/surveys.ts';
import { findSurvey, listSurveys, type SurveyRow } from '../../surveys/rows/surveys.ts';
import { SURVEY_TYPES } from '../../surveys/rules/surveys.ts';
import { isUuid } from '../../values/uuid.ts';
import { requireScope } from '../access.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { flagCommands } from '../flags/dependencies.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { inputOf, newSurvey, survey, surveyInput, surveyView } from './survey-schema.ts';

const TAGS = ['surveys'];
const PREFIX = '/api/projects/:project_id/surveys/';
const READ = 'survey:read';
const WRITE = 'survey:write';
const params = z.object({ project_id: z.string() });
const surveyParams = params.extend({ id: z.string() });

/** The flags of surveys, made by the commands of flags. */
const surveyFlags = (commands: FlagChangeDependencies): SurveyFlags => ({
  async exists(client, projectId, flagId) {
    const flag = await findFlag(client, { projectId, flagId });
    return flag !== undefined && !flag.deleted;
  },
  create: async (client, actor, projectId, flag) =>
    (await createFlagIn(client, commands, actor, projectId, flag)).id,
  change: (client, actor, key, change) => changeLinkedFlag(client, commands, actor, key, change),
});

/** Adds the routes that create, read and change surveys. */
export function surveyRoutes(app: App, deps: ApiDependencies): void {
  const { pool, config } = deps;
  const commands = { pool, flags: surveyFlags(flagCommands(deps)) };
  const keyOf = (row: SurveyRow) => ({ projectId: row.project_id, surveyId: row.id });

  async function findOne(request: FastifyRequest): Promise<SurveyRow> {
    const { id: surveyId } = request.params as { id: string };
    const key = { projectId: request.project.id, surveyId };
    const row = isUuid(surveyId) ? await findSurvey(pool, key) : undefined;
    if (!row) throw errors.notFound();
    return row;
  }

  /** Who links a flag comes to see its filters, and shows them to all who may read surveys. */
  function requireLink({ body, caller }: FastifyRequest, before: number | null): void {
    const { linked_flag_id: flagId } = body as { linked_flag_id?: number | null };
    if (typeof flagId === 'number' && flagId !== before) requireScope(caller, 'feature_flag:read');
  }

  app.get(
    PREFIX,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'List surveys, newest first',
        params,
        querystring: pageQuery.extend({
          search: z.string().max(400).optional().meta({ description: 'In the name and the description.' }),
          archived: z.enum(['true', 'false']).optional(),
          type: z.enum(SURVEY_TYPES).optional(),
        }),
        response: { 200: page(survey) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { search, archived, type } = request.query;
      const { count, rows } = await listSurveys(pool, {
        ...{ ...wanted, projectId: request.project.id, search, type },
        archived: archived === undefined ? undefined : archived === 'true',
      });
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, await mapInTurns(rows, surveyView));
    },
  );

  app.post(
    PREFIX,
    {
      config: { access: { scope: WRITE } },
      schema: { tags: TAGS, summary: 'Create a survey', params, body: newSurvey, response: { 201: survey } },
    },
    async (request, reply) => {
      requireLink(request, null);
      const input = inputOf(request.body);
      const made = await createSurvey(commands, actorOf(request), request.project.id, input);
      reply.code(201);
      return surveyView(made);
    },
  );

  app.get(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: READ } },
      schema: { tags: TAGS, summary: 'Retrieve a survey', params: surveyParams, response: { 200: survey } },
    },
    async (request) => surveyView(await findOne(request)),
  );

  for (const method of ['PUT', 'PATCH'] as const) {
    app.route({
      method,
      url: `${PREFIX}:id/`,
      config: { access: { scope: WRITE } },
      schema: {
        tags: TAGS,
        summary: method === 'PUT' ? 'Change a survey' : 'Change some fields of a survey; start it, or end it',
        description: 'Fields that you leave out keep their values.',
        params: surveyParams,
        body: surveyInput,
        response: { 200: survey },
      },
      handler: async (request) => {
        const row = await findOne(request);
        requireLink(request, row.linked_flag_id);
        return surveyView(await changeSurvey(commands, actorOf(request), keyOf(row), inputOf(request.body)));
      },
    });
  }

  app.delete(
    `${PREFIX}:id/`,
    {
      config: { access: { scope: WRITE } },
      schema: {
        tags: TAGS,
        summary: 'Delete a survey with its flags',
        description: 'The answers stay: they are events.',
        params: surveyParams,
        response: { 204: z.null() },
      },
    },
    async (request, reply) => {
      await removeSurvey(commands, actorOf(request), keyOf(await findOne(request)));
      return reply.code(204).send(null);
    },
  );
}
