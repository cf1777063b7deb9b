import { statfsSync } from 'node:fs';
import {
  FUNCTION_DISPATCH,
  FUNCTION_RETRIES,
  MAINTENANCE,
  RECONCILE_EXPORTS,
  UPKEEP as UPKEEP_WORKFLOW,
} from '../../workflows/names.ts';
import type { Report } from '../problem.ts';
import type { Service } from '../process.ts';

/**
 * Upkeep, and the workflows that older versions started every minute instead. What they did is of no interest the day after.
 */
const UPKEEP = [UPKEEP_WORKFLOW, MAINTENANCE, RECONCILE_EXPORTS, FUNCTION_DISPATCH, FUNCTION_RETRIES];
const DAY = 86_400_000;
const HOUR = 3_600_000;
/** When the first look is, so that a start has nothing else to do. */
const FIRST = 120_000;
/** With less free space than this, what is kept of runs makes room. */
const TIGHT_BYTES = 2 * 1024 ** 3;

export interface Histories {
  service: Pick<Service, 'exited'>;
  /** Runs the program of Temporal. Undefined: it failed. */
  ask(...args: string[]): Promise<string | undefined>;
  namespaces: readonly string[];
  /** How long Temporal keeps what has ended: as long as Sluice keeps the rows of runs, which link to it. */
  days: number;
  /** The directory whose disk Temporal writes to. */
  directory: string;
  report: Report;
}

/**
 * Keeps the histories of runs as long as their rows, where the disk allows it. A development server forgets them after a day.
 * What upkeep did goes after a day, so that the rest fits.
 */
export function keepHistories(options: Histories): void {
  const { service, ask, namespaces, days } = options;
  void Promise.all(
    namespaces.map((namespace) =>
      ask('operator', 'namespace', 'update', '--namespace', namespace, '--retention', `${days}d`),
    ),
  );
  const look = () => void tidyHistories(options, Date.now(), isTight(options.directory));
  const first = setTimeout(look, FIRST).unref();
  const timer = setInterval(look, HOUR).unref();
  void service.exited.then(() => {
    clearTimeout(first);
    clearInterval(timer);
  });
}

function isTight(directory: string): boolean {
  const { bavail, bsize } = statfsSync(directory);
  return bavail * bsize < TIGHT_BYTES;
}

/** Deletes what ended more than a day ago: of upkeep always, of everything where the disk is tight. Temporal does it later. */
export async function tidyHistories(
  { ask, namespaces, report }: Pick<Histories, 'ask' | 'namespaces' | 'report'>,
  now: number,
  tight: boolean,
): Promise<void> {
  if (tight) {
    report('The disk is almost full: Temporal deletes what it keeps of runs that ended more than a day ago.');
  }
  const which = tight ? '' : `WorkflowType in (${UPKEEP.map((name) => `'${name}'`).join(', ')}) and `;
  const query = `${which}ExecutionStatus != 'Running' and CloseTime < '${new Date(now - DAY).toISOString()}'`;
  for (const namespace of namespaces) {
    const where = ['--namespace', namespace, '--query', query];
    // A batch of nothing would be a workflow as well.
    const counted = await ask('workflow', 'count', ...where);
    if (counted === undefined || /total: 0\b/i.test(counted)) continue;
    await ask('workflow', 'delete', ...where, '--reason', 'older than a day', '--yes');
  }
}
