import {
  condition,
  deprecatePatch,
  isCancellation,
  patched,
  proxyActivities,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { ListedStep } from '../activities/maintenance.ts';

export interface MaintenanceReport {
  /** How much each step did, by its name. */
  counts: Record<string, number>;
  /** Steps that failed after their retries. The next run tries them again. */
  failed: string[];
}

/** Settings for tests. The schedule passes none. */
export interface MaintenanceInput {
  /** How long an attempt at a step may take. */
  longestMilliseconds?: number;
  /** How often finished steps start again while another step still runs. */
  everyMilliseconds?: number;
}

const MINUTE = 60_000;

const { listMaintenanceSteps } = proxyActivities<Activities>({
  startToCloseTimeout: '10 seconds',
  retry: { maximumInterval: '10 seconds' },
});

/** Runs one step, which is the activity of its name. Adds its count, or its failure, to the report. */
async function run(name: string, report: MaintenanceReport, longest = 2 * MINUTE): Promise<void> {
  const activities = proxyActivities<Record<string, () => Promise<number>>>({
    startToCloseTimeout: longest,
    heartbeatTimeout: '30 seconds',
    retry: { maximumAttempts: 3 },
  });
  try {
    const count = (await activities[name]?.()) ?? 0;
    report.counts[name] = (report.counts[name] ?? 0) + count;
  } catch (error) {
    // Whoever cancels maintenance wants it to end, not to report that its steps failed.
    if (isCancellation(error)) throw error;
    report.failed.push(name);
  }
}

/** Does once the work that no request does. `upkeep` does it every minute. */
export async function maintenance(input: MaintenanceInput = {}): Promise<MaintenanceReport> {
  if (!patched('steps-by-name')) {
    const report: MaintenanceReport = { counts: {}, failed: [] };
    await runInOrder(report);
    return report;
  }
  return maintainOnce(input, setCurrentDetails);
}

/** Runs all steps. A step that fails or hangs does not hold up the others. `tell` hears what was done, and what hangs. */
export async function maintainOnce(
  input: MaintenanceInput,
  tell: (text: string) => void,
): Promise<MaintenanceReport> {
  const report: MaintenanceReport = { counts: {}, failed: [] };
  const steps = await listMaintenanceSteps();
  const running = new Map<string, Promise<void>>();
  const begin = (step: ListedStep): Promise<void> => {
    const work = doStep(step).finally(() => running.delete(step.name));
    running.set(step.name, work);
    return work;
  };
  const doStep = async ({ name, after, longestMilliseconds }: ListedStep): Promise<void> => {
    if (after !== undefined) await running.get(after);
    await run(name, report, input.longestMilliseconds ?? longestMilliseconds);
  };
  let isOver = false;
  const over = () => {
    isOver = true;
  };
  // A step only fails when the workflow is cancelled. Then the wait below fails too.
  void Promise.all(steps.map(begin)).then(over, over);
  // Nothing else starts while this lasts. So the steps that have finished start again here every minute.
  while (!(await condition(() => isOver, input.everyMilliseconds ?? MINUTE))) {
    tell(`${textOf(steps, report)}\n\nStill at work: ${[...running.keys()].join(', ')}.`);
    // The new history does not know what is still at work. That ends soon, and begins again in the next round.
    if (workflowInfo().continueAsNewSuggested) return report;
    const idle = steps.filter(({ name }) => !running.has(name) && !report.failed.includes(name));
    for (const step of idle) void begin(step).catch(over);
  }
  await condition(() => running.size === 0);
  tell(textOf(steps, report));
  return report;
}

function textOf(steps: readonly ListedStep[], { counts, failed }: MaintenanceReport): string {
  const lines = steps.map(({ name, summary }) =>
    failed.includes(name) ? `- **${name} failed**` : `- ${counts[name] ?? 0} ${summary}`,
  );
  return lines.join('\n');
}

/** The steps of workflows that began before `listMaintenanceSteps`, with the patches that their histories contain. */
const IN_ORDER: readonly [name: string, guard?: string][] = [
  ['keepEventPartitions', 'event-partitions'],
  ['expireSessions'],
  ['stopDeletedProjects'],
  ['deleteProjectData'],
  ['expireIngestionWarnings', 'ingestion-warnings'],
  ['repairExportSchedules', 'export-upkeep'],
  ['endOrphanedRuns'],
  ['mendBackfills'],
  ['expireExportHistory'],
];

async function runInOrder(report: MaintenanceReport): Promise<void> {
  for (const [name, guard] of IN_ORDER) {
    if (guard !== undefined) deprecatePatch(guard);
    await run(name, report);
  }
}
