import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { mapInTurns } from '../../db/loop-turns.ts';
import { createFlagIn } from '../../flags/commands/create.ts';
import type { FlagChangeDependencies } from '../../flags/commands/dependencies.ts';
import { changeLinkedFlag } from '../../flags/commands/linked-flags.ts';
import { findFlag } from '../../flags/rows/flags.ts';
import { refuse } from '../../refusals.ts';
import {
  changeSurvey,
  createSurvey,
  removeSurvey,
  type SurveyFlags,
  type SurveyInput,
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
import { actionIds } from './survey-actions.ts';
import { inputOf, newSurvey, survey, surveyInput, surveyView } from './survey-schema.ts';

const TAGS = ['surveys'];
const PREFIX = '/api/projects/:project_id/surveys/';
const READ = 'survey:read';
const WRITE = 'survey:write';
const idsIn = (text: string): string[] =>
  text.split(',').flatMap((id) => (isUuid(id.trim()) ? id.trim() : []));
const params = z.object({ project_id: z.string() });
const surveyParams = params.extend({ id: z.string() });

/** The steps of the course of a survey. Undefined: it has been made already. */
const STEPS: { name: string; summary: string; decide: (row: SurveyRow) => SurveyInput | undefined }[] = [
  {
    ...{ name: 'launch', summary: 'Start a survey now' },
    decide(row) {
      if (row.archived) throw refuse.invalid('archived', 'An archived survey cannot start.');
      if (row.end_date !== null) {
        throw refuse.invalid('end_date', 'The survey is over. It goes on when `end_date` is set to null.');
      }
      return row.start_date === null ? { start_date: new Date().toISOString() } : undefined;
    },
  },
  {
    ...{ name: 'stop', summary: 'End a survey now' },
    decide(row) {
      if (row.archived) throw refuse.invalid('archived', 'An archived survey does not run.');
      return row.end_date === null ? { end_date: new Date().toISOString() } : undefined;
    },
  },
];

/** The flags of surveys, made by the commands of flags. */
const surveyFlags = (commands: FlagChangeDependencies): SurveyFlags => ({
  async variants(client, projectId, flagId) {
    const flag = await findFlag(client, { projectId, flagId });
    if (!flag || flag.deleted) return undefined;
    const { multivariate } = JSON.parse(flag.filters) as {
      multivariate?: { variants?: { key: string }[] } | null;
    };
    return (multivariate?.variants ?? []).map((one) => one.key);
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

  /**
   * Who links a flag comes to see its filters, and shows them to all who may read surveys. Who names an action shows its steps to
   * clients.
   */
  function requireLinks({ body, caller }: FastifyRequest, before: SurveyRow | null): void {
    const { linked_flag_id: flagId, conditions } = body as Pick<SurveyInput, 'linked_flag_id' | 'conditions'>;
    if (typeof flagId === 'number' && flagId !== before?.linked_flag_id) {
      requireScope(caller, 'feature_flag:read');
    }
    const known = new Set(actionIds(before?.conditions));
    if (actionIds(conditions).some((id) => !known.has(id))) requireScope(caller, 'action:read');
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
          ids: z.string().max(4_000).optional().meta({
            description: 'Only these, with commas between them. Those that are not there are left out.',
          }),
          type: z.enum(SURVEY_TYPES).optional(),
        }),
        response: { 200: page(survey) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const { search, archived, type, ids } = request.query;
      const { count, rows } = await listSurveys(pool, {
        ...{ ...wanted, projectId: request.project.id, search, type },
        archived: archived === undefined ? undefined : archived === 'true',
        ids: ids ? idsIn(ids) : undefined,
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
      requireLinks(request, null);
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
        requireLinks(request, row);
        const input = inputOf(request.body);
        return surveyView(await changeSurvey(commands, actorOf(request), keyOf(row), () => input));
      },
    });
  }

  for (const { name, summary, decide } of STEPS) {
    app.post(
      `${PREFIX}:id/${name}/`,
      {
        config: { access: { scope: WRITE } },
        schema: { tags: TAGS, summary, params: surveyParams, response: { 200: survey } },
      },
      async (request) => {
        const key = keyOf(await findOne(request));
        return surveyView(await changeSurvey(commands, actorOf(request), key, decide));
      },
    );
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
