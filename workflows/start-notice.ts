import { ParentClosePolicy, startChild } from '@temporalio/workflow';
import type { NoticeInput } from '../exports/temporal.ts';
import { EXPORT_KIND, NOTICE, searchAttributes } from './names.ts';

/** A workflow of its own: nobody waits for a webhook that does not answer. */
export async function startNotice(workflowId: string, notice: NoticeInput): Promise<void> {
  await startChild(NOTICE, {
    workflowId,
    args: [notice],
    parentClosePolicy: ParentClosePolicy.ABANDON,
    typedSearchAttributes: [
      { key: searchAttributes.kind, value: EXPORT_KIND },
      { key: searchAttributes.project, value: notice.projectId },
      { key: searchAttributes.export, value: notice.exportId },
    ],
    staticSummary: `Tell of ${notice.event}`,
  });
}
