import { setTimeout as pause } from 'node:timers/promises';
import type { Logger } from '../../telemetry/logger.ts';
import { type Actor, requestOf } from '../../tenancy/actor.ts';
import { markTold } from '../rows/plans.ts';
import type { FlagTemporal, Plan } from '../temporal.ts';
import type { FlagCommandDependencies } from './dependencies.ts';

/** What commands about plans work with. */
export interface PlanCommandDependencies extends FlagCommandDependencies {
  temporal: FlagTemporal;
  logger: Pick<Logger, 'warn'>;
}

/** How long the calls to Temporal may take, and how long a command waits for them, in milliseconds. */
const PATIENCE = 10_000;
const ANSWER_WITHIN = 3_000;
/** How long the calls may take while Temporal is known to be away. */
const SHORT_PATIENCE = 500;

/**
 * Tells the workflow of a plan about its row. A failure does not fail the command: the row is the truth, and maintenance
 * repeats this.
 */
export async function tellOfPlan(
  { pool, temporal, logger }: PlanCommandDependencies,
  actor: Actor,
  plan: Plan,
): Promise<void> {
  const patience = temporal.isReachable() ? PATIENCE : SHORT_PATIENCE;
  const told = temporal
    .within(patience, () => temporal.stir(plan))
    .then(() => markTold(pool, plan))
    .catch((error) => {
      const about = { ...requestOf(actor), err: error, planId: plan.planId };
      logger.warn(about, 'Temporal did not hear of a plan for a flag; maintenance tells it again');
    });
  const enough = new AbortController();
  const waited = pause(Math.min(patience, ANSWER_WITHIN), undefined, { signal: enough.signal });
  await Promise.race([told, waited.catch(() => undefined)]);
  enough.abort();
}
