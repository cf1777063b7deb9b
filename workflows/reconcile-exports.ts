import { isCancellation, proxyActivities, setCurrentDetails, workflowInfo } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';
import type { NoticeInput } from '../exports/temporal.ts';
import { startNotice } from './start-notice.ts';

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
  /** Runs that were compared with the database, and those whose rows are others now. */
  checked: number;
  differ: number;
  /** Exports, or whole steps, that failed; the next pass tries them again. */
  failed: number;
}

/** Every few minutes: whether every interval of every batch export was exported, and whether it was all of it. */
export async function reconcileExports(): Promise<ReconcileReport> {
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
  let told = 0;
  const tell = async (notices: readonly NoticeInput[]) => {
    for (const notice of notices) {
      told += 1;
      const { workflowId, runId } = workflowInfo();
      await startNotice(`${workflowId}-${runId.slice(0, 8)}-notice-${told}`, notice);
    }
  };
  try {
    const { checked, differ, notices } = await checkSources();
    report.checked = checked;
    report.differ = differ;
    await tell(notices);
  } catch (error) {
    if (isCancellation(error)) throw error;
    report.failed += 1;
  }
  let after: string | null = null;
  do {
    const page: Awaited<ReturnType<typeof reconcilePage>> = await reconcilePage({ after, limit: PAGE });
    for (const count of ['exports', 'missing', 'late', 'differs', 'repaired', 'failed'] as const)
      report[count] += page[count];
    await tell(page.notices);
    after = page.next;
  } while (after !== null);
  setCurrentDetails(
    `${report.exports} exports: ${report.missing} intervals missing, ${report.repaired} started again, ${report.late} late, ${report.differs} differ; ${report.checked} runs compared with the database${report.failed > 0 ? `; ${report.failed} failed` : ''}`,
  );
  return report;
}
