// Shows how far functions are behind. Workers dispatch and deliver without Temporal, so nothing depends on these.
import { proxyActivities, setCurrentDetails } from '@temporalio/workflow';
import type { Activities } from '../activities/index.ts';

const { dispatchBacklog, deliveryBacklog } = proxyActivities<Activities>({
  startToCloseTimeout: '30 seconds',
  retry: { maximumAttempts: 3 },
});

type Tell = (text: string) => void;

/** Shows which stored events functions have not seen yet. `upkeep` does it every minute. */
export const functionDispatch = () => showDispatch(setCurrentDetails);

export async function showDispatch(tell: Tell): ReturnType<typeof dispatchBacklog> {
  const backlog = await dispatchBacklog();
  const { batches, events, oldest, late, lateProjects } = backlog;
  const since = oldest === null ? '' : `, the oldest for ${oldest} s`;
  tell(
    [
      `${batches} transactions with ${events} events wait to be matched${since}.`,
      ...(late > 0
        ? [`${late} pieces of ${lateProjects} projects wait because their filters are slow.`]
        : []),
    ].join('\n\n'),
  );
  return backlog;
}

/** Shows which invocations wait for their first or their next attempt. `upkeep` does it every minute. */
export const functionRetries = () => showRetries(setCurrentDetails);

export async function showRetries(tell: Tell): ReturnType<typeof deliveryBacklog> {
  const backlog = await deliveryBacklog();
  const { waiting, failing, projects } = backlog;
  const lines = projects.map(
    (one) =>
      `- project ${one.projectId}: ${one.waiting} wait, ${one.failing} of them failed before; the oldest for ${one.oldest} s`,
  );
  tell([`${waiting} invocations wait; ${failing} of them failed before.`, '', ...lines].join('\n'));
  return backlog;
}
