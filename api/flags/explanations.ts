import { z } from 'zod';
import { cohortsAt, cohortsForgottenAt, membershipsAt } from '../../cohorts/rows/past.ts';
import { pacing } from '../../db/loop-turns.ts';
import { reading } from '../../db/reading.ts';
import { noVersion, rollBackFlag } from '../../flags/commands/roll-back.ts';
import { explain } from '../../flags/explain.ts';
import { explainPast } from '../../flags/explain-past.ts';
import type { FlagRow } from '../../flags/rows/flags.ts';
import { findRevision, listRevisions, type RevisionRow } from '../../flags/rows/revisions.ts';
import { differencesOf, MOST_DIFFERENCES } from '../../flags/rules/differences.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { actorOf } from '../actor.ts';
import { askerOf } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { freeForm, timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { serialOf } from '../serial.ts';
import { basicUser } from '../tenancy/user-schema.ts';
import { type Flags, flagCommands } from './dependencies.ts';
import { FLAGS_PREFIX, findsFlag } from './feature-flags.ts';
import { featureFlag, flagView } from './flag-schema.ts';

const TAGS = ['feature flags'];
const READ = 'feature_flag:read';
const WRITE = 'feature_flag:write';
const params = z.object({ project_id: z.string(), id: z.string() });

const at = z.iso.datetime({ offset: true, local: false }).meta({
  description:
    'Explain what the flag was at this time, for the person as the last event before it shows them.',
});

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
  at: at.optional(),
});

const explanation = z.object({
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
      passed: z.boolean().nullable().meta({ description: 'Null: the condition was skipped or not reached.' }),
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
});

const version = z
  .object({
    version: z.int(),
    changed_at: timestamp,
    changed_by: basicUser.nullable(),
    flag: freeForm.meta({ description: 'The flag from then on.' }),
    changes: z
      .array(z.object({ path: z.string(), before: z.unknown().optional(), after: z.unknown().optional() }))
      .meta({
        description: `What differs from the version before it, at most ${MOST_DIFFERENCES} places. The first version has none.`,
      }),
  })
  .meta({ id: 'FlagVersion' });

/** Refuses what an explanation of the past takes from events. */
function refuseWithAt({ person_properties, group_properties }: z.output<typeof subject>): void {
  const given = Object.keys(person_properties).length > 0 || Object.keys(group_properties).length > 0;
  if (!given) return;
  throw errors.validation(
    'invalid_input',
    'With `at`, the properties are those of that time. Leave out person_properties and group_properties.',
    'at',
  );
}

/**
 * Shows versions, newest first, each with what differs from the one after it in the list. Other requests have their turns
 * between two of them.
 */
async function versionViews(
  rows: readonly RevisionRow[],
  shown: number,
): Promise<z.output<typeof version>[]> {
  const views: z.output<typeof version>[] = [];
  const rest = pacing();
  let later: z.output<typeof version> | undefined;
  for (const { document, ...row } of rows) {
    const flag = parseExactJson(document) as Record<string, unknown>;
    if (later) later.changes = differencesOf(flag, later.flag);
    later = { ...row, flag, changes: [] };
    if (views.length < shown) views.push(later);
    await rest();
  }
  return views;
}

const flagOfVersion = featureFlag
  .extend({
    is_historical: z.boolean().meta({ description: 'The flag has a newer version.' }),
    version_timestamp: timestamp,
    modified_by: z.int().nullable().meta({ description: 'The user who made the version.' }),
  })
  .meta({ id: 'FeatureFlagOfVersion' });

/** Shows a flag as it was in a version. What versions do not keep is that of today. */
function revisionView(row: FlagRow, { document, version: number, changed_at, changed_by }: RevisionRow) {
  const { filters, ...fields } = parseExactJson(document) as Record<string, unknown>;
  return {
    ...flagView(row),
    ...fields,
    filters: filters as Record<string, unknown>,
    ...{ version: number, updated_at: changed_at, last_modified_by: changed_by },
    is_historical: number < row.version,
    version_timestamp: changed_at,
    modified_by: changed_by?.id ?? null,
  };
}

const past = explanation
  .extend({
    at: timestamp.optional(),
    active: z.boolean().optional().meta({ description: 'With `at`: whether clients got the flag.' }),
    rests_on: z
      .object({
        flags: z.array(z.object({ id: z.int(), key: z.string(), version: z.int(), changed_at: timestamp })),
        cohorts: z.array(
          z.object({ id: z.int(), name: z.string(), version: z.int(), changed_at: timestamp }),
        ),
        person: z.object({ event_uuid: z.string(), event: z.string(), timestamp }).nullable(),
        notes: z.array(z.string()),
      })
      .optional()
      .meta({
        description:
          'With `at`: the versions and the event that the answer rests on, and what it leaves open.',
      }),
  })
  .meta({ id: 'FlagExplanation' });

/** Adds the routes that explain the value of a flag, show its versions, and bring one back. */
export function flagExplanationRoutes(
  app: App,
  deps: Pick<ApiDependencies, 'pool' | 'readingPool' | 'config' | 'keyring'> & { flags: Flags },
): void {
  const { pool, readingPool, config, flags } = deps;
  const commands = flagCommands(deps);
  const find = findsFlag(pool);

  app.post(
    `${FLAGS_PREFIX}:id/explain/`,
    {
      // It shows what is stored about somebody.
      config: { access: { scope: READ, andScopes: ['person:read', 'group:read'] }, keepsNumbers: true },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Explain the value of a feature flag for somebody, condition by condition',
        params,
        body: subject,
        response: { 200: past },
      },
    },
    async (request, reply) => {
      const { body, flag, project } = request;
      if (body.at !== undefined) {
        refuseWithAt(body);
        const query = {
          ...{ projectId: project.id, flagId: flag.id, timezone: project.timezone },
          groupTypes: new Map(project.group_types.map((one) => [one.group_type, one.group_type_index])),
          at: new Date(body.at).toISOString(),
          ...{ distinctId: body.distinct_id, deviceId: body.$device_id, groups: body.groups },
        };
        return bounded(
          reading(readingPool, askerOf(request, reply), (client) =>
            explainPast({ cohortsAt, cohortsForgottenAt, membershipsAt }, client, query),
          ),
          'Choose a time that is nearer to the last event of this distinct id.',
        );
      }
      // Somebody who has just changed the flag wants to know of what it is now.
      const known = (await flags.definitions.of(project.id))?.set.byId.get(flag.id);
      if (known?.definition.version !== flag.version) await flags.definitions.fresh(project.id);
      const explained = await explain(flags.evaluator, project.id, flag.id, {
        ...{ distinctId: body.distinct_id, deviceId: body.$device_id, anonDistinctId: '' },
        ...{ groups: body.groups, personProperties: body.person_properties },
        ...{ groupProperties: body.group_properties, place: {}, runtime: 'all' },
      });
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
      // One more shows what the last one changed.
      const { count, rows } = await listRevisions(pool, key, { ...wanted, limit: wanted.limit + 1 });
      const isLast = wanted.offset + rows.length >= count;
      const views = await versionViews(rows, isLast ? wanted.limit : Math.max(1, rows.length - 1));
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, views);
    },
  );

  app.get(
    `${FLAGS_PREFIX}:id/versions/:version/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Retrieve a feature flag as it was in a version',
        params: params.extend({ version: z.string() }),
        response: { 200: flagOfVersion },
      },
    },
    async (request) => {
      const number = serialOf(request.params.version);
      const key = { projectId: request.project.id, flagId: request.flag.id };
      const found = number === undefined ? undefined : await findRevision(pool, key, number);
      if (!found) throw errors.notFound(number === undefined ? undefined : noVersion(request.flag, number));
      return revisionView(request.flag, found);
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
