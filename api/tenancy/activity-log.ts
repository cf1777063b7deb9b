import { z } from 'zod';
import { type ActivityRow, listActivity } from '../../db/activity-log.ts';
import { ADMIN } from '../../tenancy/levels.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { freeForm, timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';

export const activity = z
  .object({
    id: z.guid(),
    created_at: timestamp,
    organization_id: z.guid().nullable(),
    project_id: z.int().nullable(),
    actor: z.enum(['user', 'operator', 'system']).meta({
      description:
        'Who made the change. `user`: a user, through the API. `operator`: somebody at the command line. `system`: Sluice itself.',
    }),
    user_id: z.int().nullable(),
    personal_api_key_id: z.string().nullable(),
    ip: z.string().nullable(),
    request_id: z.string().nullable(),
    scope: z.string(),
    item_id: z.string(),
    activity: z.string(),
    detail: freeForm,
  })
  .meta({ id: 'Activity' });

const activityQuery = pageQuery.extend({
  scope: z
    .string()
    .max(100)
    .optional()
    .meta({ description: 'Only changes of one kind of thing: `HogFunction`.' }),
  item_id: z.string().max(400).optional().meta({ description: 'Only changes of the thing with this id.' }),
});

/** Reads which changes a request wants. A NUL is in no row, and Postgres takes none. */
const wantedOf = (query: z.output<typeof activityQuery>) => ({
  ...pageOf(query),
  ...{ scope: query.scope?.replaceAll('\u0000', ''), itemId: query.item_id?.replaceAll('\u0000', '') },
});

export function activityView({ at, ...row }: ActivityRow): z.output<typeof activity> {
  return { ...row, created_at: at };
}

/** Adds the routes that list who changed what, newest first. */
export function activityLogRoutes(app: App, { pool, config }: ApiDependencies): void {
  app.get(
    '/api/organizations/:organization_id/activity_log/',
    {
      config: { access: { scope: 'activity_log:read', level: ADMIN } },
      schema: {
        tags: ['activity log'],
        summary: 'List the changes in an organization, newest first',
        params: z.object({ organization_id: z.string() }),
        querystring: activityQuery,
        response: { 200: page(activity) },
      },
    },
    async (request) => {
      const wanted = wantedOf(request.query);
      const { count, rows } = await listActivity(pool, { organizationId: request.organization.id }, wanted);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(activityView));
    },
  );

  app.get(
    '/api/projects/:project_id/activity_log/',
    {
      config: { access: { scope: 'activity_log:read' } },
      schema: {
        tags: ['activity log'],
        summary: 'List the changes in a project, newest first',
        params: z.object({ project_id: z.string() }),
        querystring: activityQuery,
        response: { 200: page(activity) },
      },
    },
    async (request) => {
      const wanted = wantedOf(request.query);
      const { count, rows } = await listActivity(pool, { projectId: request.project.id }, wanted);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows.map(activityView));
    },
  );
}
