import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import type { NoticeInput } from '../../exports/temporal.ts';
import { EXPORT_KIND, NOTICE, searchAttributes } from '../../workflows/names.ts';

/**
 * Tells the operators of something. `about` is what it is told of, the same for every try: begun twice, also after it
 * was told, it is one notice.
 */
export async function startNotice(
  client: Client,
  notice: NoticeInput,
  about: string,
  taskQueue: string,
): Promise<void> {
  try {
    await client.workflow.start(NOTICE, {
      workflowId: `${notice.exportId}-${notice.event}-${about}`,
      workflowIdReusePolicy: 'REJECT_DUPLICATE',
      taskQueue,
      args: [notice],
      typedSearchAttributes: [
        { key: searchAttributes.kind, value: EXPORT_KIND },
        { key: searchAttributes.project, value: notice.projectId },
        { key: searchAttributes.export, value: notice.exportId },
      ],
      staticSummary: `Tell of ${notice.event}`,
    });
  } catch (error) {
    if (!(error instanceof WorkflowExecutionAlreadyStartedError)) throw error;
  }
}
