import { mergeConfig } from '../../destinations/config.ts';
import { DestinationConfigError } from '../../destinations/errors.ts';
import { projectFolder } from '../../destinations/file/folder.ts';
import { findDestination, requireDestination } from '../../destinations/registry.ts';
import {
  type DestinationSettings,
  runTestStep,
  type ShownStep,
  testSteps,
} from '../../destinations/settings.ts';
import { refuse } from '../../refusals.ts';
import { openSettings } from '../reads/settings.ts';
import { folderOf } from '../reads/stored-target.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import type { DestinationInput } from './prepare.ts';
import { refusing } from './refusals.ts';

type Dependencies = Pick<ExportCommandDependencies, 'egress' | 'exportRoot'>;

/** Lists the steps of the test of a destination, without running them. */
export function listTestSteps(type: string): ShownStep[] {
  const steps = testSteps(type);
  if (steps) return steps;
  const known = findDestination(type) !== undefined;
  throw refuse.absent(known ? `There is no test of ${type}.` : 'There is no such type of destination.');
}

/** Below this folder nothing is ever written, because projects count from 1. */
const NOBODYS = projectFolder(0);

/** Runs a step of the test of a destination, for a project if one is known. Stores nothing. */
export async function testDestination(
  deps: Dependencies,
  projectId: number | undefined,
  { type, config }: DestinationInput & { type: string },
  step: number,
): Promise<ShownStep> {
  const folder = projectId === undefined ? NOBODYS : projectFolder(projectId);
  return runStep(deps, folder, { type, config: config ?? {} }, step);
}

/** Runs a step of the test of an export's destination. Keys of `input` replace the stored ones. Stores nothing. */
export async function testExportDestination(
  deps: Dependencies & Pick<ExportCommandDependencies, 'keyring'>,
  row: BatchExportRow,
  input: DestinationInput | undefined,
  step: number,
): Promise<ShownStep> {
  const settings = await refusing(() => {
    const stored = openSettings(deps.keyring, row);
    const type = input?.type ?? stored.type;
    if (!requireDestination(type).types.includes(stored.type)) {
      throw new DestinationConfigError(
        `Cannot change destination type from '${stored.type}' to '${type}'. Delete this batch export and create a new one with the new destination type.`,
        'type',
      );
    }
    return { type, config: mergeConfig(stored.config, input?.config ?? {}) };
  });
  return runStep(deps, folderOf(row.project_id, row, settings), settings, step);
}

async function runStep(
  { egress, exportRoot }: Dependencies,
  folder: string | null,
  settings: DestinationSettings,
  step: number,
): Promise<ShownStep> {
  const done = await runTestStep(settings, step, { egress, exportRoot, folder });
  if (done) return done;
  const count = testSteps(settings.type)?.length ?? 0;
  if (count === 0) throw refuse.absent(`There is no test of ${settings.type}.`);
  throw refuse.invalid(
    'step',
    `There is no step ${step}: the test of ${settings.type} has ${count} steps, from 0 on.`,
  );
}
