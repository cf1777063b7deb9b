import { z } from 'zod';
import { carryCohorts } from '../../cohorts/commands/carry.ts';
import { PAGE_BYTES } from '../../db/reading.ts';
import { Turns } from '../../db/turns.ts';
import { type CopyDependencies, copyFlag } from '../../flags/commands/copy.ts';
import { copySchedule } from '../../flags/commands/copy-schedule.ts';
import { findFlag, findFlagByKey, siblingsOf } from '../../flags/rows/flags.ts';
import { Refusal } from '../../refusals.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { narrow } from '../access.ts';
import { actorOf } from '../actor.ts';
import { clientSignal } from '../asker.ts';
import { cohortCommands } from '../cohorts/dependencies.ts';
import type { ApiDependencies, App } from '../dependencies.ts';
import { errors } from '../errors.ts';
import { freeForm, timestamp } from '../fields.ts';
import { basicUser } from '../tenancy/user-schema.ts';
import { flagCommands, planCommands } from './dependencies.ts';
import { featureFlag, flagView } from './flag-schema.ts';

const TAGS = ['feature flags'];
const PREFIX = '/api/organizations/:organization_id/feature_flags/';
const params = z.object({ organization_id: z.string() });
const MOST_TARGETS = 100;
const projectId = z.int().min(1).max(2_147_483_647);
const NO_PROJECT = 'Target project does not exist.';

const copy = z.object({
  feature_flag_key: z.string().min(1).max(400),
  from_project: projectId,
  target_project_ids: z.array(projectId).min(1).max(MOST_TARGETS),
  disable_copied_flag: z.boolean().default(false).meta({ description: 'True: the copies are disabled.' }),
  copy_schedule: z.boolean().default(false).meta({
    description: 'True: what is planned for the flag and still to come is planned for the copies too.',
  }),
});

const sibling = z.object({
  flag_id: z.int(),
  team_id: z.int(),
  created_by: basicUser.nullable(),
  filters: freeForm,
  created_at: timestamp,
  active: z.boolean(),
});

/** Adds the routes about flags of several projects of an organization. */
export function flagCopyRoutes(app: App, deps: ApiDependencies): void {
  const { pool } = deps;
  // A copy may have many targets, and a schedule for each of them.
  const turns = new Turns({ atOnce: 2, perAsker: 1, waitingPerAsker: 5, patience: 30_000 });
  const plans = planCommands(deps);
  const commands: CopyDependencies = {
    ...flagCommands(deps),
    carryCohorts: (actor, way, ids) => carryCohorts(cohortCommands(deps), actor, way, ids),
  };

  app.post(
    `${PREFIX}copy_flags/`,
    {
      config: { access: { scope: 'feature_flag:write', narrowsToProjects: true } },
      schema: {
        tags: TAGS,
        summary: 'Copy a feature flag to other projects of the organization',
        description:
          'A flag of the same key becomes what the copied one is. Cohorts, flags and types of groups that the filters name are found by their names. Cohorts that a project does not have are created there, but for static ones.',
        params,
        body: copy,
        response: {
          200: z.object({
            success: z.array(
              featureFlag.extend({
                schedule_copy_warning: z.string().optional().meta({
                  description: 'Why some of what is planned was not copied. The flag was.',
                }),
              }),
            ),
            failed: z.array(
              z.object({
                project_id: z.int(),
                error_message: z.string(),
                errors: z.string().meta({ description: 'The same, for older clients.' }),
              }),
            ),
          }),
        },
      },
    },
    async (request, reply) => {
      const { body, caller, organization } = request;
      const visible = new Set(narrow(caller.key, organization)?.projects.map((one) => one.id));
      const source = visible.has(body.from_project)
        ? await findFlagByKey(pool, body.from_project, body.feature_flag_key)
        : undefined;
      if (!source) {
        const message = 'Feature flag to copy does not exist.';
        throw errors.validation('does_not_exist', message, 'feature_flag_key');
      }
      const success: (z.output<typeof featureFlag> & { schedule_copy_warning?: string })[] = [];
      const failed: { project_id: number; error_message: string; errors: string }[] = [];
      const signal = clientSignal(reply);
      const copyTo = async (target: number) => {
        try {
          if (!visible.has(target)) throw new Refusal('absent', NO_PROJECT);
          const options = { isDisabled: body.disable_copied_flag };
          const row = await copyFlag(commands, actorOf(request), source, target, options);
          const warning = body.copy_schedule
            ? await copySchedule({ ...commands, ...plans }, actorOf(request), source, row, signal)
            : undefined;
          success.push({ ...flagView(row), ...(warning && { schedule_copy_warning: warning }) });
        } catch (error) {
          if (!(error instanceof Refusal)) throw error;
          failed.push({ project_id: target, error_message: error.message, errors: error.message });
        }
      };
      const leave = await turns.enter(organization.id, signal);
      try {
        for (const target of new Set(body.target_project_ids)) {
          signal.throwIfAborted();
          await copyTo(target);
        }
      } finally {
        leave();
      }
      return { success, failed };
    },
  );

  app.get(
    `${PREFIX}:key/`,
    {
      config: { access: { scope: 'feature_flag:read', narrowsToProjects: true } },
      schema: {
        tags: TAGS,
        summary: 'The feature flags of a key, in all projects of the organization',
        params: params.extend({ key: z.string() }),
        response: { 200: z.array(sibling) },
      },
    },
    async ({ params: { key }, caller, organization }) => {
      const projects = narrow(caller.key, organization)?.projects ?? [];
      const ids = projects.map((one) => one.id);
      const siblings = await siblingsOf(pool, ids, key);
      const bytes = siblings.reduce((sum, one) => sum + one.bytes, 0);
      if (bytes > PAGE_BYTES) {
        const message = `The filters of the ${siblings.length} flags have ${bytes} bytes, and an answer has ${PAGE_BYTES} at most. Ask each project for its flag.`;
        throw errors.validation('limit', message, 'key');
      }
      const shown: z.output<typeof sibling>[] = [];
      for (const one of siblings) {
        const row = await findFlag(pool, one);
        if (!row || row.deleted) continue;
        shown.push({
          ...{ flag_id: row.id, team_id: row.project_id, created_by: row.created_by },
          filters: parseExactJson(row.filters) as Record<string, unknown>,
          ...{ created_at: row.created_at, active: row.active },
        });
      }
      return shown;
    },
  );
}
