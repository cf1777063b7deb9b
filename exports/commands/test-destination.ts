import { projectFolder } from '../../destinations/file/folder.ts';
import { findDestination } from '../../destinations/registry.ts';
import {
  type DestinationSettings,
  mergeSettings,
  runTestStep,
  type ShownStep,
  testSteps,
} from '../../destinations/settings.ts';
import type { Column } from '../../formats/columns.ts';
import type { Model } from '../../models/index.ts';
import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { type Activity, audit } from '../../tenancy/audit.ts';
import { type ExportQueryRow, exportQuery } from '../reads/query.ts';
import { openSettings } from '../reads/settings.ts';
import { folderOf } from '../reads/stored-target.ts';
import type { BatchExportRow } from '../rows/batch-exports.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { reads } from './effort.ts';
import type { DestinationInput } from './prepare.ts';
import { refusing } from './refusals.ts';

type Dependencies = Pick<ExportCommandDependencies, 'pool' | 'egress' | 'exportRoot' | 'diskOf' | 'limits'> &
  // Without these, nobody knows what a query selects.
  Partial<Pick<ExportCommandDependencies, 'compiler' | 'compiling'>>;

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
  {
    model,
    hogqlQuery,
    ...wanted
  }: WantedStep & { model?: string | undefined; hogqlQuery?: string | null | undefined },
): Promise<ShownStep> {
  const folder = 'projectId' in place ? projectFolder(place.projectId) : NOBODYS;
  const columns = () =>
    hogqlQuery && 'projectId' in place
      ? selectedBy(
          deps,
          {
            ...{
              project_id: place.projectId,
              destination_type: type,
              config: {},
              timezone: 'UTC',
              filters: null,
            },
            ...{ hogql_query: hogqlQuery, model: null },
          },
          wanted.signal,
        )
      : columnsOf(type, model);
  const settings = { type, config: config ?? {} };
  return runStep(deps, actor, { ...place, itemId: '', folder }, { settings, columns }, wanted);
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
  const columns = () =>
    row.hogql_query === null
      ? columnsOf(settings.type, row.model)
      : selectedBy(deps, { ...row, destination_type: settings.type }, wanted.signal);
  const about = { projectId: row.project_id, itemId: row.id, folder };
  return runStep(deps, actor, about, { settings, columns }, wanted);
}

/** The columns that a query selects. Undefined: there is no compiler. */
async function selectedBy(
  { compiler, compiling }: Dependencies,
  row: ExportQueryRow,
  signal: AbortSignal | undefined,
): Promise<readonly Column[] | undefined> {
  if (!compiler || !compiling) return undefined;
  const asker = { projectId: row.project_id, signal };
  const anyTime = { start: null, end: Date.now() };
  const query = await refusing(() =>
    reads({ compiler, compiling }, asker, (one) => exportQuery(one, row, anyTime)),
  );
  return query.columns;
}

/** The default columns of a model at a type of destination. Undefined: there is no such model, or it has none there. */
async function columnsOf(type: string, model?: string): Promise<readonly Column[] | undefined> {
  const destination = findDestination(type);
  // The models would double the time that commands of the terminal take to start.
  const { DEFAULT_MODEL, MODELS } = await import('../../models/registry.ts');
  const wanted = model ?? DEFAULT_MODEL;
  const found: Model | undefined = MODELS.find(({ name }) => name === wanted);
  return destination && found?.columns[destination.columns];
}

async function runStep(
  { pool, egress, exportRoot, diskOf, limits = {} }: Dependencies,
  actor: Actor,
  {
    folder,
    ...tested
  }: Pick<Activity, 'projectId' | 'organizationId' | 'itemId'> & { folder: string | null },
  {
    settings,
    columns,
  }: { settings: DestinationSettings; columns: () => Promise<readonly Column[] | undefined> },
  { step, signal }: WantedStep,
): Promise<ShownStep> {
  const { type } = settings;
  const done = await runTestStep(
    settings,
    step,
    { egress, exportRoot, folder, diskOf, limits, columns },
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
