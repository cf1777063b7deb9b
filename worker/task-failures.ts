import { type OperatorWebhook, postNotice } from '../egress/operator-notices.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { TaskFailures } from './temporal-metrics.ts';

/** How often failures are looked at, and how many looks of the last minutes must find some, before somebody is told. */
const LOOK_EVERY = 20_000;
const LOOKS = 3;
/** Temporal repeats a task after ever longer pauses, of ten minutes at most. */
const WITHIN = 900_000;
/** While it lasts, it is told again after this time. */
const AGAIN_AFTER = 3_600_000;

export interface FailureWatch {
  takeFailures(): TaskFailures;
  taskQueue: string;
  /** Undefined: only the log tells. */
  operators: OperatorWebhook | undefined;
  logger: Logger;
  lookEvery?: number;
}

/**
 * Tells of workflow tasks that fail again and again. Temporal repeats such a task for ever, and its workflow stands still
 * without a failure of its own: for instance after a worker with other code has taken it over. This depends on no workflow,
 * because they may all stand still.
 */
export function watchTaskFailures({
  takeFailures,
  taskQueue,
  operators,
  logger,
  lookEvery = LOOK_EVERY,
}: FailureWatch) {
  let foundAt: number[] = [];
  let toldAt = Number.NEGATIVE_INFINITY;
  let told: Promise<void> = Promise.resolve();
  takeFailures();
  const look = () => {
    const { count, workflowTypes, reasons } = takeFailures();
    const now = Date.now();
    if (count === 0) return;
    foundAt = [...foundAt.filter((at) => at > now - WITHIN), now];
    if (foundAt.length < LOOKS || now - toldAt < AGAIN_AFTER) return;
    toldAt = now;
    const about = { taskQueue, workflowTypes, reasons };
    logger.error(
      about,
      'workflow tasks fail again and again, so these workflows stand still; `npx sluice doctor` shows which. Was a worker with other code started?',
    );
    if (!operators) return;
    const at = new Date(now).toISOString();
    const body = {
      event: 'temporal.workflow_tasks_failing',
      at,
      details: { task_queue: taskQueue, workflow_types: workflowTypes, reasons },
    };
    // Several workers see the same: the receiver knows it by the hour.
    const key = `workflow-tasks-${taskQueue}-${at.slice(0, 13)}`;
    told = postNotice(operators, body, key).catch((err) => {
      logger.warn({ err }, 'a notice of failing workflow tasks was not sent');
      toldAt = now - AGAIN_AFTER + 60_000;
    });
  };
  const timer = setInterval(look, lookEvery);
  timer.unref();
  return {
    async close(): Promise<void> {
      clearInterval(timer);
      await told;
    },
  };
}
