import { z } from 'zod';
import { rollBackFlag } from '../../flags/commands/roll-back.ts';
import { explain } from '../../flags/explain.ts';
import { listRevisions, type RevisionRow } from '../../flags/rows/revisions.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { actorOf } from '../actor.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { freeForm, timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { basicUser } from '../tenancy/user-schema.ts';
import { type Flags, flagCommands } from './dependencies.ts';
import { FLAGS_PREFIX, findsFlag } from './feature-flags.ts';
import { featureFlag, flagView } from './flag-schema.ts';

const TAGS = ['feature flags'];
const READ = 'feature_flag:read';
const WRITE = 'feature_flag:write';
const params = z.object({ project_id: z.string(), id: z.string() });

const subject = z.object({
  distinct_id: z.string().max(200),
  groups: z.record(z.string(), z.string()).default({}).meta({ description: 'The keys of groups, by type.' }),
  person_properties: freeForm
    .default({})
    .meta({ description: 'Count more than the stored properties of the person.' }),
  group_properties: z
    .record(z.string(), freeForm)
    .default({})
    .meta({ description: 'By type of group. Count more than the stored properties.' }),
  $device_id: z.string().max(200).default(''),
});

const explanation = z
  .object({
    key: z.string(),
    value: z.union([z.boolean(), z.string()]),
    failed: z.boolean(),
    reason: z.object({
      code: z.string(),
      condition_index: z.int().nullable(),
      description: z.string(),
    }),
    payload: z.string().nullable(),
    conditions: z.array(
      z.object({
        index: z.int(),
        passed: z
          .boolean()
          .nullable()
          .meta({ description: 'Null: the condition was skipped or not reached.' }),
        filters: z.array(
          z.object({
            filter: z.unknown().meta({ description: 'The filter as it is stored.' }),
            passed: z.boolean(),
            found: z.unknown().meta({
              description: 'The property of the person or group, or the value of the other flag. Null: none.',
            }),
          }),
        ),
        rollout_percentage: z.number().nullable(),
        counted_id: z.string().nullable().meta({ description: 'The id that is counted to the rollout.' }),
        counted_at: z
          .number()
          .nullable()
          .meta({ description: 'Where it lies, from 0 to 100. It is in the rollout up to the percentage.' }),
      }),
    ),
  })
  .meta({ id: 'FlagExplanation' });

const version = z
  .object({
    version: z.int(),
    changed_at: timestamp,
    changed_by: basicUser.nullable(),
    flag: freeForm.meta({ description: 'The flag from then on.' }),
  })
  .meta({ id: 'FlagVersion' });

const versionView = ({ document, ...row }: RevisionRow) => ({
  ...row,
  flag: parseExactJson(document) as Record<string, unknown>,
});

/** Adds the routes that explain the value of a flag, show its versions, and bring one back. */
export function flagExplanationRoutes(
  app: App,
  deps: Pick<ApiDependencies, 'pool' | 'config' | 'keyring'> & { flags: Flags },
): void {
  const { pool, config, flags } = deps;
  const commands = flagCommands(deps);
  const find = findsFlag(pool);

  app.post(
    `${FLAGS_PREFIX}:id/explain/`,
    {
      config: { access: { scope: READ }, keepsNumbers: true },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Explain the value of a feature flag for somebody, condition by condition',
        params,
        body: subject,
        response: { 200: explanation },
      },
    },
    async ({ body, flag, project }) => {
      const explained = await explain(flags.evaluator, project.id, flag.id, {
        ...{ distinctId: body.distinct_id, deviceId: body.$device_id, anonDistinctId: '' },
        ...{ groups: body.groups, personProperties: body.person_properties },
        ...{ groupProperties: body.group_properties, place: {}, runtime: 'all' },
      });
      // This process has not heard of the flag yet.
      if (!explained) throw errors.notFound();
      return explained;
    },
  );

  app.get(
    `${FLAGS_PREFIX}:id/history/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the versions of a feature flag, newest first',
        params,
        querystring: pageQuery,
        response: { 200: page(version) },
      },
    },
    async (request) => {
      const wanted = pageOf(request.query);
      const key = { projectId: request.project.id, flagId: request.flag.id };
      const { count, rows } = await listRevisions(pool, key, wanted);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(versionView));
    },
  );

  app.post(
    `${FLAGS_PREFIX}:id/roll_back/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Make a feature flag again what it was in a version',
        description: 'That is a further version. It is checked like any other change.',
        params,
        body: z.object({ version: z.int().min(1).max(2_147_483_647) }),
        response: { 200: featureFlag },
      },
    },
    async (request) => {
      const key = { projectId: request.project.id, flagId: request.flag.id };
      return flagView(await rollBackFlag(commands, actorOf(request), key, request.body.version));
    },
  );
}
