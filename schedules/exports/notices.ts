import { type Client, WorkflowExecutionAlreadyStartedError } from '@temporalio/client';
import { noticeWorkflowId } from '../../exports/rules/workflow-ids.ts';
import type { NoticeInput } from '../../exports/temporal.ts';
import { EXPORT_KIND, NOTICE, searchAttributes } from '../../workflows/names.ts';

/** Sends a notice to the operators. Calls with the same `about` send it once, even if it was sent before. */
export async function startNotice(
  client: Client,
  notice: NoticeInput,
  about: string,
  taskQueue: string,
): Promise<void> {
  try {
    await client.workflow.start(NOTICE, {
      workflowId: noticeWorkflowId(notice.exportId, notice.event, about),
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
