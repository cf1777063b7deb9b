import { projectFolder } from '../../destinations/file/folder.ts';
import { findDestination } from '../../destinations/registry.ts';
import {
  type DestinationSettings,
  mergeSettings,
  runTestStep,
  type ShownStep,
  testSteps,
} from '../../destinations/settings.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit } from '../../tenancy/audit.ts';
import { openSettings } from '../reads/settings.ts';
import { folderOf } from '../reads/stored-target.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import type { DestinationInput } from './prepare.ts';
import { refusing } from './refusals.ts';

type Dependencies = Pick<ExportCommandDependencies, 'pool' | 'egress' | 'exportRoot' | 'diskOf' | 'limits'>;

/** A step of a test, and when nobody waits for its result any more. */
export interface WantedStep {
  step: number;
  signal?: AbortSignal | undefined;
}

/** Lists the steps of the test of a destination, without running them. */
export function listTestSteps(type: string): ShownStep[] {
  const steps = testSteps(type);
  if (steps) return steps;
  const known = findDestination(type) !== undefined;
  throw refuse.absent(known ? `There is no test of ${type}.` : 'There is no such type of destination.');
}

/** Below this folder nothing is ever written, because projects count from 1. */
const NOBODYS = projectFolder(0);

/** Runs a step of the test of a destination. Stores nothing, but the activity log says who tested which address. */
export async function testDestination(
  deps: Dependencies,
  actor: Actor,
  place: { projectId: number } | { organizationId: string },
  { type, config }: DestinationInput & { type: string },
  wanted: WantedStep,
): Promise<ShownStep> {
  const folder = 'projectId' in place ? projectFolder(place.projectId) : NOBODYS;
  return runStep(deps, actor, { ...place, itemId: '', folder }, { type, config: config ?? {} }, wanted);
}

/**
 * Runs a step of the test of an export's destination. Keys of `input` replace the stored ones. If they change where the
 * secrets travel, they must contain the secrets. Stores nothing, but the activity log says who tested which address.
 */
export async function testExportDestination(
  deps: Dependencies & Pick<ExportCommandDependencies, 'keyring'>,
  actor: Actor,
  row: BatchExportRow,
  input: DestinationInput | undefined,
  wanted: WantedStep,
): Promise<ShownStep> {
  const settings = await refusing(() => {
    const stored = openSettings(deps.keyring, row);
    return mergeSettings(stored, { type: input?.type ?? stored.type, config: input?.config ?? {} });
  });
  const folder = folderOf(row.project_id, row, settings);
  return runStep(deps, actor, { projectId: row.project_id, itemId: row.id, folder }, settings, wanted);
}

async function runStep(
  { pool, egress, exportRoot, diskOf, limits = {} }: Dependencies,
  actor: Actor,
  {
    folder,
    ...tested
  }: Pick<Activity, 'projectId' | 'organizationId' | 'itemId'> & { folder: string | null },
  settings: DestinationSettings,
  { step, signal }: WantedStep,
): Promise<ShownStep> {
  const { type } = settings;
  const done = await runTestStep(
    settings,
    step,
    { egress, exportRoot, folder, diskOf, limits },
    {
      signal,
      // Before it connects: what is written down then is written down, whatever the server does.
      onBegin: (name, address) =>
        audit(pool, actor, {
          scope: 'BatchExport',
          activity: 'tested',
          ...tested,
          detail: { destination: type, step: name, address },
        }),
    },
  );
  if (done) return done;
  const count = testSteps(type)?.length ?? 0;
  if (count === 0) throw refuse.absent(`There is no test of ${type}.`);
  throw refuse.invalid(
    'step',
    `There is no step ${step}: the test of ${type} has ${count} steps, from 0 on.`,
  );
}
