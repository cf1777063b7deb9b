import type { Queryable } from '../../db/pool.ts';
import type { Finding } from '../../tenancy/product.ts';
import { oldestWaiting } from '../rows/health.ts';
import { lossesSince } from '../rows/losses.ts';

const DAYS = 7;
/** Invocations are repeated for a day. What waits for longer is more than a target that is away for a while. */
const LONG = 24 * 3_600;

/** Says whether functions lost events, and which are far behind. */
export async function diagnoseFunctions(queryable: Queryable): Promise<Finding[]> {
  const lost = await lossesSince(queryable, new Date(Date.now() - DAYS * 86_400_000));
  const [behind] = await oldestWaiting(queryable, 1, LONG);
  return [
    {
      check: 'events for functions',
      ok: lost === 0,
      sentence:
        lost === 0
          ? 'Retention has deleted no event that functions had still to see.'
          : `In the last ${DAYS} days, retention deleted ${lost} events that functions had not seen. The table ` +
            'function_losses says of which projects. Keep events for longer (SLUICE_EVENT_RETENTION_DAYS), or start more workers.',
    },
    {
      check: 'functions behind',
      ok: !behind,
      sentence: behind
        ? `Function ${behind.function_id} of project ${behind.project_id} has an invocation that has waited since ` +
          `${behind.since}. Look at its target and its log, or start more workers.`
        : 'No function has an invocation that has waited for more than a day.',
    },
  ];
}
