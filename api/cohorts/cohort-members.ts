import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { addPersons, removePerson } from '../../cohorts/commands/members.ts';
import { listMembers } from '../../cohorts/rows/members.ts';
import { COHORT_LIMITS } from '../../cohorts/rules/limits.ts';
import { reading } from '../../db/reading.ts';
import { isUuid } from '../../values/uuid.ts';
import { actorOf } from '../actor.ts';
import { askerOf } from '../asker.ts';
import { bounded } from '../bounded-query.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';
import { COHORTS_PREFIX, cohortParams, findsCohort } from './find-cohort.ts';

const TAGS = ['cohorts'];
const READ = 'cohort:read';
const WRITE = 'cohort:write';

function requireStatic({ cohort }: FastifyRequest, what: 'add users to' | 'remove users from'): void {
  if (cohort.is_static) return;
  const reason = 'The filters of the cohort decide who is in it.';
  throw errors.validation('invalid_input', `Can only ${what} static cohorts`, null, reason);
}

/** Adds the routes that list the members of cohorts, and change those of static ones. */
export function cohortMemberRoutes(
  app: App,
  { pool, readingPool, config }: Pick<ApiDependencies, 'pool' | 'readingPool' | 'config'>,
): void {
  const find = findsCohort(pool);

  app.get(
    `${COHORTS_PREFIX}:id/persons/`,
    {
      config: { access: { scope: READ } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'List the members of a cohort',
        description: 'Those of a cohort that is not static are as of its `last_calculation`.',
        params: cohortParams,
        querystring: pageQuery,
        response: { 200: page(z.object({ id: z.guid(), uuid: z.guid() })) },
      },
    },
    async (request, reply) => {
      const wanted = pageOf(request.query);
      const { count, ids } = await bounded(
        reading(readingPool, askerOf(request, reply), (client) =>
          listMembers(client, request.project.id, request.cohort.id, wanted),
        ),
        'Ask for a page that is nearer to the first one.',
      );
      const results = ids.map((id) => ({ id, uuid: id }));
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, results);
    },
  );

  const added = z.array(z.string().max(400)).max(COHORT_LIMITS.added).default([]);

  // Clients PATCH; POST is kept for those who know the route from here.
  for (const method of ['PATCH', 'POST'] as const) {
    app.route({
      method,
      url: `${COHORTS_PREFIX}:id/add_persons_to_static_cohort/`,
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Add persons to a static cohort',
        description: 'Persons who are not known are left out. If none is known, the request is refused.',
        params: cohortParams,
        body: z
          .object({
            person_ids: added.meta({ description: 'Ids of persons.' }),
            distinct_ids: added.meta({ description: 'Distinct ids of persons.' }),
          })
          .refine(({ person_ids, distinct_ids }) => person_ids.length + distinct_ids.length > 0, {
            error: 'person_ids cannot be empty',
            path: ['person_ids'],
          })
          .meta({ minProperties: 1 }),
        response: {
          200: z.object({
            success: z.literal(true),
            unknown: z.int().meta({ description: 'How many of the ids belong to no person.' }),
            examples: z.array(z.string()).meta({ description: 'The first of them.' }),
          }),
        },
      },
      handler: async (request) => {
        requireStatic(request, 'add users to');
        const { cohort: row, body } = request;
        const { person_ids, distinct_ids } = body;
        const wrong = person_ids.find((id) => !isUuid(id));
        if (wrong !== undefined) {
          throw errors.validation(
            'invalid_input',
            `"${wrong.slice(0, 60)}" is not the id of a person.`,
            'person_ids',
          );
        }
        const ids = { personIds: person_ids, distinctIds: distinct_ids };
        const unknown = await addPersons({ pool }, actorOf(request), row, ids);
        return { success: true as const, unknown: unknown.length, examples: unknown.slice(0, 10) };
      },
    });
  }

  app.patch(
    `${COHORTS_PREFIX}:id/remove_person_from_static_cohort/`,
    {
      config: { access: { scope: WRITE } },
      preValidation: find,
      schema: {
        tags: TAGS,
        summary: 'Take a person out of a static cohort',
        params: cohortParams,
        body: z.object({ person_id: z.guid() }),
        response: { 200: z.object({ success: z.literal(true) }) },
      },
    },
    async (request) => {
      requireStatic(request, 'remove users from');
      const { cohort: row, body } = request;
      await removePerson({ pool }, actorOf(request), row, body.person_id);
      return { success: true as const };
    },
  );
}
