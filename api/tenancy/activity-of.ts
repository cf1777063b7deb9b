// What was done to things of one kind, in the form in which the clients of these things read it.
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type ActivityRow, listActivity } from '../../db/activity-log.ts';
import { findShownUsers, type ShownUser } from '../../db/users.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { freeForm } from '../fields.ts';
import { numbered, numberedPageOf, numberedPageQuery, page } from '../pagination.ts';
import { activity, activityView } from './activity-log.ts';
import { basicUser } from './user-schema.ts';

/** Entries of a page, if the request does not say. */
const USUAL = 10;

const entry = activity
  .extend({
    user: basicUser.nullable().meta({ description: 'Who made the change, if it was a user.' }),
    is_system: z.boolean().meta({ description: 'No user made the change.' }),
    team_id: z.int().nullable(),
    detail: freeForm.meta({
      description:
        '`name` is what the thing is called. `changes` lists its fields that changed, with their values before and after.',
    }),
  })
  .meta({ id: 'ActivityOfThing' });

const actionOf = ({ before, after }: { before?: unknown; after?: unknown }): string => {
  if (before === null || before === undefined) return 'created';
  return after === null || after === undefined ? 'deleted' : 'changed';
};

function entryView(row: ActivityRow, users: ReadonlyMap<number, ShownUser>): z.output<typeof entry> {
  const { changes = [], ...rest } = row.detail as { changes?: { before?: unknown; after?: unknown }[] };
  const shown = changes.map((one) => ({ type: row.scope, action: actionOf(one), ...one }));
  return {
    ...activityView(row),
    user: (row.user_id !== null && users.get(row.user_id)) || null,
    is_system: row.actor !== 'user',
    team_id: row.project_id,
    detail: { name: null, short_id: null, type: null, trigger: null, ...rest, changes: shown },
  };
}

export interface Things {
  /** The path of their list. */
  prefix: string;
  /** What they are called in the activity log. */
  scope: string;
  tag: string;
  /** As in `a feature flag`, `feature flags`. */
  one: string;
  many: string;
  /** Finds the thing of the path, before its id is asked for. */
  find: (request: FastifyRequest) => Promise<void>;
  idOf: (request: FastifyRequest) => number | string;
}

/** Adds the routes that list what was done to things of one kind, and to one of them. */
export function addActivityOf(
  app: App,
  { pool, config }: Pick<ApiDependencies, 'pool' | 'config'>,
  things: Things,
): void {
  for (const ofOne of [false, true]) {
    app.get(
      `${things.prefix}${ofOne ? ':id/' : ''}activity/`,
      {
        config: { access: { scope: 'activity_log:read' } },
        ...(ofOne ? { preValidation: things.find } : {}),
        schema: {
          tags: [things.tag],
          summary: `List what was done to ${ofOne ? things.one : things.many}, newest first`,
          description: `A page has ${USUAL} entries by default.`,
          params: z.object({ project_id: z.string(), ...(ofOne ? { id: z.string() } : {}) }),
          querystring: numberedPageQuery,
          response: { 200: page(entry).extend({ total_count: z.int() }) },
        },
      },
      async (request) => {
        const wanted = numberedPageOf(request.query, USUAL);
        const itemId = ofOne ? String(things.idOf(request)) : undefined;
        const { count, rows } = await listActivity(
          pool,
          { projectId: request.project.id },
          { ...wanted, scope: things.scope, itemId },
        );
        const users = await findShownUsers(pool, [...new Set(rows.flatMap((row) => row.user_id ?? []))]);
        const shown = rows.map((row) => entryView(row, users));
        return { ...numbered(request, config.SLUICE_PUBLIC_URL, wanted, count, shown), total_count: count };
      },
    );
  }
}
