import type { Lane } from '../exports/rows/places.ts';
import {
  type BackfillReference,
  type FinishBackfillInput,
  finishBackfill,
  type ListIntervalsInput,
  listBackfillIntervals,
  sizeBackfill,
} from '../exports/runs/backfills.ts';
import { checkSources } from '../exports/runs/check-sources.ts';
import { type CompareIntervalInput, compareInterval } from '../exports/runs/compare-interval.ts';
import type { RunDependencies } from '../exports/runs/dependencies.ts';
import { type ExportIntervalInput, exportInterval } from '../exports/runs/export-interval.ts';
import { type FinishRunInput, finishExportRun } from '../exports/runs/finish-run.ts';
import { sendNotice } from '../exports/runs/notices.ts';
import { type ReconcilePageInput, reconcilePage } from '../exports/runs/reconcile.ts';
import { type StartRunInput, startExportRun } from '../exports/runs/start-run.ts';
import type { NoticeInput } from '../exports/temporal.ts';
import { inActivity } from './work.ts';

/**
 * Makes the activities of one lane that read or export rows, which may take hours. Each takes a place of the worker
 * first.
 */
export function createHeavyActivities({ exports }: { exports: RunDependencies }, lane: Lane) {
  const deps = { ...exports, lane };
  return {
    exportInterval: (input: ExportIntervalInput) => inActivity((work) => exportInterval(deps, input, work)),
    compareInterval: (input: CompareIntervalInput) =>
      inActivity((work) => compareInterval(deps, input, work)),
  };
}

/**
 * Makes the other activities of batch exports. Their names are in the histories of workflows, so they must not change.
 */
export function createExportActivities({ exports: deps }: { exports: RunDependencies }) {
  return {
    startExportRun: (input: StartRunInput) => inActivity(() => startExportRun(deps, input)),
    finishExportRun: (input: FinishRunInput) => inActivity(() => finishExportRun(deps, input)),
    // The id of the workflow is the same for every try, so it is the idempotency key.
    sendNotice: (input: NoticeInput) =>
      inActivity((_, { info }) => sendNotice(deps, input, info.workflowExecution?.workflowId)),

    sizeBackfill: (input: BackfillReference) => inActivity((work) => sizeBackfill(deps, input, work)),
    listBackfillIntervals: (input: ListIntervalsInput) =>
      inActivity(() => listBackfillIntervals(deps, input)),
    finishBackfill: (input: FinishBackfillInput) => inActivity(() => finishBackfill(deps, input)),

    reconcilePage: (input: ReconcilePageInput) => inActivity((work) => reconcilePage(deps, input, work)),
    checkSources: () => inActivity((work) => checkSources(deps, work)),
  };
}
