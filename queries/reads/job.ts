import { sealedWeeks } from '../../db/event-spans.ts';
import type { Pool } from '../../db/pool.ts';
import { findProject } from '../../db/projects.ts';
import { refuse } from '../../refusals.ts';
import type { QueryJob } from '../rules/request.ts';

/** Reads what any query of a project is compiled from. `now` is what `now()` gives. */
export async function readJob(
  pool: Pool,
  projectId: number,
  request: QueryJob['request'],
  now: number,
): Promise<Omit<QueryJob, 'form'>> {
  const [project, weeks] = await Promise.all([findProject(pool, projectId), sealedWeeks(pool, projectId)]);
  if (!project) throw refuse.absent();
  const { timezone, test_account_filters: testAccounts } = project;
  return { request, projectId, timezone, now, testAccounts, weeks };
}
