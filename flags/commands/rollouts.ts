import { changeTransaction } from '../../db/change-turns.ts';
import { transaction } from '../../db/pool.ts';
import { uuidv7 } from '../../db/uuid.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { plannerOf } from '../plan-actor.ts';
import { type FlagKey, findFlag, lockFlags } from '../rows/flags.ts';
import { endRollout, insertRollout, pauseRollout, type RolloutRow, resumeRollout } from '../rows/rollouts.ts';
import { ENDINGS, percentageIn, ROLLOUT_LIMITS, withoutPercentage } from '../rules/rollouts.ts';
import { auditFlag } from './audit.ts';
import { type PlanCommandDependencies, tellOfPlan } from './tell.ts';

export interface RolloutInput {
  conditionIndex: number;
  /** By default the percentage that the condition set has. */
  from?: number | undefined;
  to: number;
  steps: number;
  /** By default now. */
  startsAt?: string | undefined;
  endsAt: string;
}

const RETRY_SECONDS = 60;
const DAY = 86_400_000;

const planOf = (row: RolloutRow) => ({
  kind: 'rollout' as const,
  ...{ projectId: row.project_id, planId: row.id, flagId: row.flag_id },
});

const logged = (row: RolloutRow) => ({
  ...{ id: row.id, condition_index: row.condition_index, from_percentage: row.from_percentage },
  ...{ to_percentage: row.to_percentage, steps: row.steps, starts_at: row.starts_at, ends_at: row.ends_at },
});

function spanOf({ startsAt, endsAt }: RolloutInput): { starts_at: string; ends_at: string } {
  const now = Date.now();
  const start = startsAt === undefined ? now : Date.parse(startsAt);
  const end = Date.parse(endsAt);
  if (end <= start || end <= now) {
    const message = 'The end must be in the future and after the beginning, `starts_at`.';
    throw refuse.invalid('ends_at', message);
  }
  if (end - start > ROLLOUT_LIMITS.days * DAY) {
    throw refuse.invalid('ends_at', `A rollout may take ${ROLLOUT_LIMITS.days} days at most.`);
  }
  return { starts_at: new Date(start).toISOString(), ends_at: new Date(end).toISOString() };
}

/** Rolls a condition set out, from one percentage to another over a span. Its steps are in the name of the actor. */
export async function startRollout(
  deps: PlanCommandDependencies,
  actor: Actor,
  key: FlagKey,
  input: RolloutInput,
): Promise<RolloutRow> {
  const span = spanOf(input);
  const { conditionIndex, to, steps } = input;
  const made = await changeTransaction(deps.pool, key.projectId, async (client) => {
    await lockFlags(client, key.projectId);
    const flag = await findFlag(client, key);
    if (!flag || flag.deleted) throw refuse.absent();
    if (!flag.active) throw refuse.invalid(null, 'The flag is disabled. Enable it, and then roll it out.');
    const groups = (JSON.parse(flag.filters) as { groups?: Record<string, unknown>[] }).groups ?? [];
    const condition = groups[conditionIndex];
    if (condition === undefined) {
      const message = `The flag has ${groups.length} condition sets, counted from 0. There is no ${conditionIndex}.`;
      throw refuse.invalid('condition_index', message);
    }
    const percentage = percentageIn(condition);
    const from = input.from ?? percentage;
    if (from === to) throw refuse.invalid('to_percentage', `The condition set is at ${to} % already.`);
    const row = await insertRollout(client, {
      ...{ project_id: key.projectId, flag_id: key.flagId, id: uuidv7(), condition_index: conditionIndex },
      ...{ condition: JSON.stringify(withoutPercentage(condition)), percentage, steps, ...span },
      ...{ from_percentage: from, to_percentage: to, ...plannerOf(actor) },
    });
    if (!row) {
      const message = 'This flag already has a rollout in progress. Wait for it to end, or cancel it.';
      throw refuse.contested(message, RETRY_SECONDS);
    }
    await auditFlag(client, actor, flag, 'started', { name: flag.key, rollout: logged(row) });
    return row;
  });
  await tellOfPlan(deps, actor, planOf(made));
  return made;
}

const ACTIVITIES = { pause: 'paused', resume: 'resumed', cancel: 'cancelled' } as const;
const NEEDED = { pause: 'running', resume: 'paused', cancel: 'running or paused' } as const;
const CANCELLED = 'Cancelled by a user.';

/** Pauses, resumes or cancels a rollout. The percentage stays what it is. */
export async function steerRollout(
  deps: PlanCommandDependencies,
  actor: Actor,
  { project_id: projectId, id: rolloutId, flag_id: flagId }: RolloutRow,
  change: keyof typeof ACTIVITIES,
): Promise<RolloutRow> {
  const key = { projectId, rolloutId };
  const changed = await transaction(deps.pool, async (client) => {
    const flag = await findFlag(client, { projectId, flagId });
    if (!flag || flag.deleted) throw refuse.absent();
    if (change === 'resume' && !flag.active) throw refuse.invalid(null, ENDINGS.disabled);
    const row =
      change === 'pause'
        ? await pauseRollout(client, key, null)
        : change === 'resume'
          ? await resumeRollout(client, key)
          : await endRollout(client, key, { status: 'cancelled', reason: CANCELLED });
    if (!row) throw refuse.invalid(null, `Cannot ${change} a rollout that is not ${NEEDED[change]}.`);
    await auditFlag(client, actor, flag, ACTIVITIES[change], { name: flag.key, rollout: logged(row) });
    return row;
  });
  await tellOfPlan(deps, actor, planOf(changed));
  return changed;
}
