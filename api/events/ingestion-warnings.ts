import { z } from 'zod';
import type { Warnings } from '../../capture/warnings.ts';
import { listIngestionWarnings } from '../../db/ingestion-warnings.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { freeForm, timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';

const ingestionWarning = z
  .object({
    reason: z.string().meta({ description: 'Why events were skipped or changed.' }),
    effect: z.enum(['skipped', 'changed', 'not_applied']).meta({
      description:
        '`skipped`: the events were not stored; of a body that was refused, none. `changed`: they were stored with changes. `not_applied`: they were ' +
        'stored, but what they say about persons or groups was not applied.',
    }),
    day: z.string().meta({ format: 'date' }),
    count: z.int(),
    first_seen_at: timestamp,
    last_seen_at: timestamp,
    sample: freeForm.meta({
      description:
        'The newest of the events, its index in the request, and details that help to find it; or the newest of the refused bodies.',
    }),
  })
  .meta({ id: 'IngestionWarning' });

/** Adds the route that lists why events of a project were skipped or changed, newest day first. */
export function ingestionWarningRoutes(
  app: App,
  { pool, config, warnings }: Pick<ApiDependencies, 'pool' | 'config'> & { warnings: Warnings },
): void {
  app.get(
    '/api/projects/:project_id/ingestion_warnings/',
    {
      config: { access: { scope: 'project:read' } },
      schema: {
        tags: ['ingestion warnings'],
        summary: 'List why events were skipped or changed',
        params: z.object({ project_id: z.string() }),
        querystring: pageQuery,
        response: { 200: page(ingestionWarning) },
      },
    },
    async (request) => {
      await warnings.flush();
      const wanted = pageOf(request.query);
      const { count, rows } = await listIngestionWarnings(pool, request.project.id, wanted);
      return paginated(request, config.SLUICE_PUBLIC_URL, wanted, count, rows);
    },
  );
}
