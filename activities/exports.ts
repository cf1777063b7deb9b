import type { ActivityDependencies } from './dependencies.ts';
import { createCompareInterval } from './exports/compare-interval.ts';
import { createExportInterval } from './exports/export-interval.ts';
import { createFinishRun } from './exports/finish-run.ts';
import { createSendNotice } from './exports/notice.ts';
import { createStartRun } from './exports/start-run.ts';

/** What carries rows, for hours it may be: done on a queue of its own, a bounded number at once. */
export function createHeavyActivities(deps: ActivityDependencies) {
  return {
    exportInterval: createExportInterval(deps),
    compareInterval: createCompareInterval(deps),
  };
}

/** Steps of a run that take a moment. */
export function createExportActivities(deps: ActivityDependencies) {
  return {
    startExportRun: createStartRun(deps),
    finishExportRun: createFinishRun(deps),
    sendNotice: createSendNotice(deps),
  };
}
