import { z } from 'zod';
import type { Warnings } from '../../capture/warnings.ts';
import { listIngestionWarnings } from '../../db/ingestion-warnings.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { freeForm, timestamp } from '../fields.ts';
import { page, pageOf, pageQuery, paginated } from '../pagination.ts';

const ingestionWarning = z
  .object({
    reason: z.string().meta({ description: 'Why events were skipped, or what was changed in them.' }),
    effect: z.enum(['skipped', 'changed', 'not_applied']),
    day: z.string().meta({ format: 'date' }),
    count: z.int(),
    first_seen_at: timestamp,
    last_seen_at: timestamp,
    sample: freeForm.meta({ description: 'Index in its request, and what helps to find the newest event.' }),
  })
  .meta({ id: 'IngestionWarning' });

/** What was skipped or changed among a project's events, newest first. */
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
