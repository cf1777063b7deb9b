// Shows how far functions are behind. Workers dispatch and deliver without Temporal, so nothing depends on these.
import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

const { dispatchBacklog, deliveryBacklog } = proxyActivities<Activities>({
  startToCloseTimeout: '30 seconds',
  retry: { maximumAttempts: 3 },
});

/** Shows, every minute, which stored events functions have not seen yet. */
export async function functionDispatch(): ReturnType<typeof dispatchBacklog> {
  const backlog = await dispatchBacklog();
  const { batches, events, oldest, late, lateProjects } = backlog;
  const since = oldest === null ? '' : `, the oldest for ${oldest} s`;
  setCurrentDetails(
    [
      `${batches} transactions with ${events} events wait to be matched${since}.`,
      ...(late > 0
        ? [`${late} pieces of ${lateProjects} projects wait because their filters are slow.`]
        : []),
    ].join('\n\n'),
  );
  return backlog;
}

/** Shows, every minute, which invocations wait for their first or their next attempt. */
export async function functionRetries(): ReturnType<typeof deliveryBacklog> {
  const backlog = await deliveryBacklog();
  const { waiting, failing, projects } = backlog;
  const lines = projects.map(
    (one) =>
      `- project ${one.projectId}: ${one.waiting} wait, ${one.failing} of them failed before; the oldest for ${one.oldest} s`,
  );
  setCurrentDetails(
    [`${waiting} invocations wait; ${failing} of them failed before.`, '', ...lines].join('\n'),
  );
  return backlog;
}
