import { z } from 'zod';
import { findQuota } from '../../flags/rows/quotas.ts';
import { type UsageRow, usageOfOrganization, usageOfProject } from '../../flags/rows/usage.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { instantOf, moment } from '../moment.ts';
import type { Flags } from './dependencies.ts';
import { FLAGS_PREFIX } from './feature-flags.ts';

const READ = 'feature_flag:read';
const TAGS = ['feature flags'];

const daysQuery = z.strictObject({
  after: moment.meta({ description: 'Counts from the day of this time on, in UTC. Default: `-30d`.' }),
  before: moment.meta({ description: 'Counts up to the day of this time. Default: today.' }),
});

const counts = {
  day: z.string().meta({ format: 'date' }),
  requests: z.int().meta({ description: 'Requests for the flags of somebody.' }),
  definitions: z.int().meta({ description: 'Requests for definitions. Each counts as ten.' }),
  limited: z.int().meta({ description: 'Requests that got no flags, because the quota was used up.' }),
};
const ofProject = z.object({ results: z.array(z.object(counts)) }).meta({ id: 'FlagUsage' });
const ofOrganization = z
  .object({
    quota: z.object({
      month: z.string().meta({ format: 'date', description: 'The first day of this month, in UTC.' }),
      requests_per_month: z
        .int()
        .nullable()
        .meta({ description: 'How many requests the organization may make in a month. Null: any number.' }),
      used: z.int().meta({
        description:
          'What was used of the quota in this month, with what API processes may be using at this moment. Zero without a quota.',
      }),
    }),
    results: z.array(z.object({ project_id: z.int(), ...counts })),
  })
  .meta({ id: 'OrganizationFlagUsage' });

const dayOf = (time: string | undefined, usual: string): string =>
  new Date(time ?? (instantOf(usual) as string)).toISOString().slice(0, 10);

const withoutProject = ({ project_id: _, ...row }: UsageRow) => row;

/** Adds the routes that tell how many requests for flags were made. */
export function flagUsageRoutes(
  app: App,
  { pool, config, flags }: Pick<ApiDependencies, 'pool' | 'config'> & { flags: Flags },
): void {
  const daysIn = ({ after, before }: z.output<typeof daysQuery>) => ({
    from: dayOf(after, '-30d'),
    to: dayOf(before, '-0h'),
  });

  app.get(
    `${FLAGS_PREFIX}usage/`,
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'Count the requests for feature flags of a project by day, newest first',
        params: z.object({ project_id: z.string() }),
        querystring: daysQuery,
        response: { 200: ofProject },
      },
    },
    async ({ project, query }) => {
      await flags.usage.flush();
      const rows = await usageOfProject(pool, project.id, daysIn(query));
      return { results: rows.map(withoutProject) };
    },
  );

  app.get(
    '/api/organizations/:organization_id/feature_flag_usage/',
    {
      config: { access: { scope: READ } },
      schema: {
        tags: TAGS,
        summary: 'Count the requests for feature flags of an organization by day and project, newest first',
        params: z.object({ organization_id: z.string() }),
        querystring: daysQuery,
        response: { 200: ofOrganization },
      },
    },
    async ({ organization, query }) => {
      await flags.usage.flush();
      const quota = await findQuota(pool, organization.id);
      if (!quota) throw errors.notFound();
      const bound = quota.flag_requests_per_month ?? config.SLUICE_FLAG_REQUESTS_PER_MONTH;
      return {
        quota: {
          month: quota.period,
          requests_per_month: bound === 0 ? null : bound,
          used: quota.granted - quota.held,
        },
        results: await usageOfOrganization(pool, organization.id, daysIn(query)),
      };
    },
  );
}
