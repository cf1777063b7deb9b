import { describe, expect, test } from '@jest/globals';
import {
  addIngestionWarnings,
  deleteSomeIngestionWarnings,
  type NewIngestionWarning,
} from '../../db/ingestion-warnings.ts';
import type { MaintenanceReport } from '../../workflows/maintenance.ts';
import { MAINTENANCE } from '../../workflows/names.ts';
import { eventually } from '../support/eventually.ts';
import { workerForFile } from '../support/worker.ts';

const world = workerForFile();
const { database } = world;

describe('maintenance', () => {
  test('runs when it is nudged, and reports what it did', async () => {
    await database.pool.query(
      `insert into wizard_sessions (hash, expires_at) values ('old', now() - interval '1 second'), ('new', now() + interval '1 hour')`,
    );
    await addIngestionWarnings(
      database.pool,
      [91, 92, 400, 89, 0].map((days) => warning(1, days)),
    );
    world.schedules.nudgeMaintenance();
    await eventually(async () => {
      const { rows } = await database.pool.query('select hash from wizard_sessions');
      return rows.length === 1 && (await warningDays(1)).length === 2;
    });
    const report: MaintenanceReport = await world.client.workflow.execute(MAINTENANCE, {
      taskQueue: world.config.SLUICE_TASK_QUEUE,
      workflowId: 'maintenance-by-hand',
    });
    expect(report).toEqual({
      counts: {
        removeExportLeftovers: 0,
        sealSecrets: 0,
        sealEvents: 0,
        sealEventIds: 0,
        summarizeEvents: 0,
        keepEventPartitions: expect.any(Number),
        expireSessions: expect.any(Number),
        stopDeletedProjects: 0,
        deleteProjectData: 0,
        expireIngestionWarnings: expect.any(Number),
        repairExportSchedules: 0,
        endOrphanedRuns: 0,
        keepPlaces: 0,
        mendBackfills: 0,
        mendReplays: 0,
        expireBackgroundQueries: 0,
        expireExportHistory: expect.any(Number),
        recompileFunctions: 0,
        cancelWaitingInvocations: 0,
        keepFunctionHistory: 0,
        keepFunctionVersions: 0,
        keepFlagVersions: 0,
        keepCohortVersions: 0,
        expireFlagPlans: 0,
        keepActivityLog: 0,
        countCohorts: 0,
        expireFlagHashKeys: 0,
        expireFlagQuotas: 0,
        hashSecretTokens: 0,
        mendFlagPlans: 0,
        endFullSurveys: 0,
        advanceSurveys: 0,
        tellOfFunctions: 0,
        carryProperties: 0,
        readPersonWords: 0,
        noteFirstEvents: 0,
      },
      failed: [],
    });
    const { rows } = await database.pool.query('select hash from wizard_sessions');
    expect(rows).toEqual([{ hash: 'new' }]);
    expect(await warningDays(1)).toEqual([89, 0]);
  });
});

const DAY = 86_400_000;

function warning(projectId: number, daysAgo: number): NewIngestionWarning {
  const moment = Date.now() - daysAgo * DAY;
  return {
    project_id: projectId,
    reason: 'missing_distinct_id',
    effect: 'skipped',
    count: 1,
    first_seen: moment,
    last_seen: moment,
    sample: {},
  };
}

/** How many days ago the project's warnings were. */
async function warningDays(projectId: number): Promise<number[]> {
  const { rows } = await database.pool.query(
    `select (now() at time zone 'utc')::date - day as days from ingestion_warnings where project_id = $1 order by day`,
    [projectId],
  );
  return rows.map((row) => row.days);
}

describe('deleting ingestion warnings', () => {
  test('goes in steps, each of which can be repeated, over all projects', async () => {
    const day = new Date(Date.now() - 5 * DAY).toISOString().slice(0, 10);
    await addIngestionWarnings(
      database.pool,
      [11, 12, 13].flatMap((projectId) => [4, 5, 6, 7, 8].map((days) => warning(projectId, days))),
    );
    await database.pool.query('delete from ingestion_warnings where project_id = 1');
    const left = async () =>
      (await Promise.all([11, 12, 13].map((projectId) => warningDays(projectId)))).flat().length;
    let deleted = 0;
    for (let step = 0; step < 3; step += 1) {
      // Two at once, as after an attempt that was thought to be lost.
      const both = [1, 2].map(() => deleteSomeIngestionWarnings(database.pool, day, 4));
      for (const some of await Promise.all(both)) {
        expect(some).toBeLessThanOrEqual(4);
        deleted += some;
      }
      expect(await left()).toBe(15 - deleted);
    }
    expect(deleted).toBe(9);
    expect(await deleteSomeIngestionWarnings(database.pool, day, 4)).toBe(0);
    for (const projectId of [11, 12, 13]) expect(await warningDays(projectId)).toEqual([5, 4]);
  });
});
