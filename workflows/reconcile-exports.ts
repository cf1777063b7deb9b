import { isCancellation, proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

const PAGE = 100;

const { reconcilePage, checkSources } = proxyActivities<Activities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '1 minute',
  retry: { maximumAttempts: 3 },
});

export interface ReconcileReport {
  exports: number;
  missing: number;
  late: number;
  differs: number;
  /** Intervals that were started again. */
  repaired: number;
  /** Runs that were compared with the database, and those that differ from it. */
  checked: number;
  differ: number;
  /** Exports, or whole steps, that failed. The next pass tries them again. */
  failed: number;
}

/** Checks once that every interval of every batch export was exported completely. `upkeep` does it every five minutes. */
export const reconcileExports = (): Promise<ReconcileReport> => reconcileOnce(setCurrentDetails);

/** Checks all exports. `tell` hears what was found. */
export async function reconcileOnce(tell: (text: string) => void): Promise<ReconcileReport> {
  const report = {
    exports: 0,
    missing: 0,
    late: 0,
    differs: 0,
    repaired: 0,
    checked: 0,
    differ: 0,
    failed: 0,
  };
  try {
    const { checked, differ } = await checkSources();
    report.checked = checked;
    report.differ = differ;
  } catch (error) {
    if (isCancellation(error)) throw error;
    report.failed += 1;
  }
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof reconcilePage>> = await reconcilePage({ after, limit: PAGE });
    for (const count of ['exports', 'missing', 'late', 'differs', 'repaired', 'failed'] as const)
      report[count] += page[count];
    after = page.next;
  } while (after !== null);
  tell(
    `${report.exports} exports: ${report.missing} intervals missing, ${report.repaired} started again, ${report.late} late, ${report.differs} differ; ${report.checked} runs compared with the database${report.failed > 0 ? `; ${report.failed} failed` : ''}`,
  );
  return report;
}
