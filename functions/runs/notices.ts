import type { Pool } from '../../db/pool.ts';
import { NoticeError, type OperatorWebhook, postNotice } from '../../egress/operator-notices.ts';
import type { Logger } from '../../telemetry/logger.ts';
import type { Work } from '../../tenancy/product.ts';
import { findFunction } from '../rows/functions.ts';
import { disabledNow, findHealth, oldestWaiting } from '../rows/health.ts';
import { STATE } from '../rules/watcher.ts';
import type { FunctionNotice, FunctionTemporal } from '../temporal.ts';

export interface NoticeRunDependencies {
  pool: Pool;
  temporal: FunctionTemporal;
  logger: Pick<Logger, 'warn'>;
  /** Undefined: there are no notices. */
  operators: OperatorWebhook | undefined;
  /** Behind so many seconds, the operators hear of a function. */
  behindSeconds: number;
  /** The address of the API, for links. */
  site: string;
}

const AT_ONCE = 100;

/** Tells the operators of functions that are disabled because of their cost, or that are far behind: of each once, or once a day. */
export async function tellOfFunctions(
  { pool, temporal, operators, behindSeconds }: NoticeRunDependencies,
  { signal, beat }: Work,
): Promise<number> {
  if (!operators) return 0;
  const disabled = (await disabledNow(pool, AT_ONCE)).map((one) => ({
    notice: noticeOf('function.disabled', one, one.since),
    about: one.since,
  }));
  const behind = (await oldestWaiting(pool, AT_ONCE, behindSeconds)).map((one) => ({
    notice: noticeOf('function.behind', one, one.since),
    about: new Date().toISOString().slice(0, 10),
  }));
  let told = 0;
  for (const { notice, about } of [...disabled, ...behind]) {
    signal.throwIfAborted();
    beat();
    if (await temporal.startNotice(notice, about)) told += 1;
  }
  return told;
}

const noticeOf = (
  event: FunctionNotice['event'],
  { project_id: projectId, function_id: functionId }: { project_id: number; function_id: string },
  at: string,
): FunctionNotice => ({ event, projectId, functionId, at });

const HOURS = 24;

/** Posts a notice, which says how the function fares now. */
export async function sendFunctionNotice(
  { pool, operators, logger, site }: NoticeRunDependencies,
  { event, projectId, functionId, at }: FunctionNotice,
  idempotencyKey: string,
): Promise<void> {
  if (!operators) return;
  const row = await findFunction(pool, { projectId, functionId });
  // It was deleted, so nobody needs the notice.
  if (!row) return;
  const health = await findHealth(pool, { projectId, functionId }, HOURS);
  const url = `${site}/api/projects/${projectId}/hog_functions/${functionId}/`;
  const body = {
    ...{ event, at, project: { id: projectId } },
    function: {
      ...{ id: functionId, name: row.name, type: row.type, enabled: row.enabled, paused: row.paused },
      disabled_for_good: row.watched?.state === STATE.disabledForGood,
    },
    details: health,
    urls: { function: url, invocations: `${url}invocations/`, logs: `${url}logs/` },
  };
  try {
    await postNotice(operators, body, idempotencyKey);
  } catch (error) {
    if (error instanceof NoticeError) {
      logger.warn({ event, functionId, again: error.again }, error.message);
    }
    throw error;
  }
}
