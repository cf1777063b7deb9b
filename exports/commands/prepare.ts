import type { Transaction } from '../../db/pool.ts';
import { inTurn } from '../../db/reading.ts';
import type { RawConfig } from '../../destinations/config.ts';
import { requireColumns, requireDestination, requireQuery } from '../../destinations/registry.ts';
import {
  checkSettings,
  type DestinationSettings,
  patchSettings,
  shownSettings,
} from '../../destinations/settings.ts';
import { targetsCollide, type WriteTarget } from '../../destinations/write-target.ts';
import {
  DEFAULT_MODEL,
  listed,
  type ModelQuery,
  modelsFor,
  planFault,
  planQuery,
  requireEvents,
  rulesOf,
  type Source,
  type SourceRules,
  WHOLE_QUERY,
} from '../../models/index.ts';
import { refuse } from '../../refusals.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import { type Actor, maySeeProject } from '../../tenancy/actor.ts';
import { exportQuery } from '../reads/query.ts';
import { keepSettings, openSettings, sealSettings } from '../reads/settings.ts';
import { folderOf, type StoredTarget, storedTargetOf } from '../reads/stored-target.ts';
import {
  type BatchExportFields,
  type BatchExportRow,
  lockStoreWriters,
  type StoreWriter,
} from '../rows/batch-exports.ts';
import { type CadenceFields, type CadenceInput, cadenceFields } from '../rules/cadence.ts';
import { isOnce } from '../rules/once.ts';
import type { ExportCommandDependencies } from './dependencies.ts';
import { reads } from './effort.ts';
import { refusing } from './refusals.ts';

/** What a user sets about a destination. Keys of the configuration that are left out keep their values. */
export interface DestinationInput {
  type?: string | undefined;
  config?: RawConfig | null | undefined;
}

/**
 * What a user sets about an export. Fields that are left out keep their values, or in a new export get their defaults.
 */
export interface ExportInput extends CadenceInput {
  name?: string | undefined;
  /** Null: the one that `hogql_query` names, or events. */
  model?: Source | null | undefined;
  destination?: DestinationInput | undefined;
  paused?: boolean | undefined;
  last_paused_at?: string | null | undefined;
  start_at?: string | null | undefined;
  end_at?: string | null | undefined;
  hogql_query?: string | null | undefined;
  filters?: unknown;
}

/** What a user sets about a new export. Some fields have no default. */
export interface NewExportInput extends ExportInput {
  name: string;
  destination: DestinationInput & { type: string };
  interval: BatchExportRow['interval'];
}

export interface Subject {
  projectId: number;
  exportId: string;
  /** The export as it is stored. Undefined: it is a new one. */
  current?: BatchExportRow | undefined;
}

export interface PreparedExport {
  fields: BatchExportFields;
  target: StoredTarget | null;
  /** The cohorts that it names, and where. */
  cohorts: NonNullable<ModelQuery['cohorts']>;
  /** The names of the secrets that the input sets. */
  secrets: string[];
}

const MOST_COHORT = 2_147_483_647;
/** Whether a cohort can have this id. */
const isPossible = (id: number) => id > 0 && id <= MOST_COHORT;

type PrepareDependencies = Pick<ExportCommandDependencies, 'compiler' | 'compiling' | 'reader' | 'keyring'>;

/**
 * Computes an export after a change, and checks everything that can be checked without connecting to the destination,
 * also that Postgres can run new columns and filters. Otherwise the first run would find out. This may take long, so
 * call it before the transaction that stores the result.
 */
export async function prepareExport(
  deps: PrepareDependencies,
  subject: Subject,
  input: ExportInput,
  signal?: AbortSignal,
): Promise<PreparedExport> {
  const asker = { projectId: subject.projectId, signal };
  const { prepared, query } = await reads(deps, asker, (compiler) =>
    readExport({ compiler, keyring: deps.keyring }, subject, input),
  );
  if (!input.hogql_query && !input.filters) return prepared;
  const { reader } = deps;
  await refusing(() =>
    inTurn(reader, asker, () => planQuery(reader, query, signal)).catch((error) => {
      throw planFault(error, prepared.fields);
    }),
  );
  return prepared;
}

/** Computes an export after a change without Postgres. `query` is its query for an arbitrary interval. */
function readExport(
  { compiler, keyring }: Pick<ExportCommandDependencies, 'compiler' | 'keyring'>,
  { current, exportId, projectId }: Subject,
  input: ExportInput,
): Promise<{ prepared: PreparedExport; query: ModelQuery }> {
  return refusing(async () => {
    const cadence = cadenceFields(current, input);
    if (isOnce(cadence)) requireOnce(current, input);
    const bounds = boundsOf(current, input);
    const settings = settingsOf(keyring, current, input);
    const stored =
      current && !input.destination
        ? keepSettings(keyring, {
            destination_type: current.destination_type,
            config: current.config,
            secrets: current.secrets,
          })
        : sealSettings(keyring, exportId, settings);
    const asked = input.hogql_query === undefined ? current?.hogql_query : input.hogql_query;
    const hogqlQuery = asked?.trim() ? asked : null;
    const filters = input.filters === undefined ? (current?.filters ?? null) : input.filters;
    const asks = { filters, hogql_query: hogqlQuery, timezone: cadence.timezone };
    const wanted = givenModel(current, input, cadence);
    if (hogqlQuery !== null) requireQuery(settings.type);
    else if (wanted !== WHOLE_QUERY) requireModel(settings.type, wanted ?? DEFAULT_MODEL);
    // Any interval will do, because invalid settings are invalid for each of them.
    const query = await exportQuery(
      compiler,
      { ...asks, ...stored, model: wanted, project_id: projectId },
      { start: null, end: Date.now() },
    );
    const model = rulesOf(query.model);
    requireEventsForNames(settings, model);
    if (hogqlQuery !== null && (input.hogql_query || input.destination)) {
      requireColumns(settings.type, model, query.columns);
    }
    const folder = folderOf(projectId, current, settings);
    // The time of its creation is in the keys of an export that runs once, and no other export has it.
    const target = isOnce(cadence)
      ? null
      : storedTargetOf(settings, { model: query.model, interval: cadence.interval, folder });
    const shown = shownSettings(settings).config;
    const { cohorts = [] } = query;
    const prepared = {
      target,
      cohorts,
      secrets: Object.keys(input.destination?.config ?? {}).filter((key) => !Object.hasOwn(shown, key)),
      fields: {
        ...{ ...asks, model: query.model },
        ...cadence,
        ...bounds,
        ...stored,
        name: input.name ?? current?.name ?? '',
        paused: input.paused ?? current?.paused ?? false,
        last_paused_at: given(input.last_paused_at, current?.last_paused_at),
        schema: query.schema ?? null,
        // No cohort has a larger id, and the save is refused.
        asks_cohorts: [...new Set(cohorts.map((one) => one.id))].filter(isPossible),
        write_store: target?.store ?? null,
        write_target: target?.target ?? null,
        folder,
      },
    };
    return { prepared, query };
  });
}

const given = <T>(sent: T | null | undefined, stored: T | null | undefined): T | null =>
  sent === undefined ? (stored ?? null) : sent;

/** Returns the model that an export must have. Null: its query decides. */
function givenModel(
  current: BatchExportRow | undefined,
  input: ExportInput,
  cadence: CadenceFields,
): Source | null {
  const once = isOnce(cadence) ? WHOLE_QUERY : null;
  const model = input.model ?? current?.model ?? once;
  if ((model === WHOLE_QUERY) !== (once !== null)) {
    throw refuse.invalid(
      'model',
      "The model 'hogql' is for batch exports with the interval 'once', which export the whole result of 'hogql_query'.",
    );
  }
  if (current && model !== current.model) {
    throw refuse.invalid('model', 'Changing models is not supported. Create a new batch export instead.');
  }
  return model;
}

/** Refuses fields that have no effect on an export that runs once, and another query for one that did. */
function requireOnce(current: BatchExportRow | undefined, input: ExportInput): void {
  for (const field of ['start_at', 'end_at', 'last_paused_at', 'paused'] as const) {
    if (!input[field]) continue;
    throw refuse.invalid(
      field,
      `A batch export that runs 'once' has no schedule, so '${field}' has no effect.`,
    );
  }
  if (current && input.hogql_query !== undefined && input.hogql_query !== current.hogql_query) {
    throw refuse.invalid(
      'hogql_query',
      "The query of a batch export that runs 'once' cannot be changed. Create another batch export instead.",
    );
  }
}

function boundsOf(current: BatchExportRow | undefined, input: ExportInput) {
  const start = given(input.start_at, current?.start_at);
  const end = given(input.end_at, current?.end_at);
  if (start !== null && end !== null && Date.parse(start) >= Date.parse(end)) {
    throw refuse.invalid(input.end_at ? 'end_at' : 'start_at', "'start_at' must be before 'end_at'");
  }
  return { start_at: start, end_at: end };
}

/** Returns the destination after the change. Decrypts its secrets only if the change concerns the destination. */
function settingsOf(
  keyring: Keyring | undefined,
  current: BatchExportRow | undefined,
  { destination: sent }: ExportInput,
): DestinationSettings {
  if (!current) return checkSettings({ type: sent?.type ?? '', config: sent?.config ?? {} });
  const { destination_type: type, config } = current;
  if (!sent) return { type, config };
  const stored = openSettings(keyring, current);
  return patchSettings(stored, { type: sent.type ?? type, config: sent.config ?? {} });
}

/** Refuses a model that the destination does not take. */
function requireModel(type: string, name: string): void {
  const possible: readonly string[] = modelsFor(requireDestination(type).columns);
  if (possible.includes(name)) return;
  throw refuse.invalid('model', `${type} batch exports only support the ${listed(possible, 'and')} model`);
}

/** Only events have names. For other models a list of names would be a limit that does nothing. */
function requireEventsForNames({ config }: DestinationSettings, model: SourceRules): void {
  for (const key of ['include_events', 'exclude_events']) {
    const names = config[key];
    if (!Array.isArray(names) || names.length === 0) continue;
    requireEvents(key, model, (message) => refuse.invalid(`destination__config__${key}`, message));
  }
}

/** Refuses cohorts that the project does not have. Those that it has stay until the transaction ends. */
export async function refuseUnknownCohorts(
  { knownCohorts }: Pick<ExportCommandDependencies, 'knownCohorts'>,
  client: Transaction,
  projectId: number,
  { cohorts }: PreparedExport,
): Promise<void> {
  if (cohorts.length === 0) return;
  const possible = cohorts.map((one) => one.id).filter(isPossible);
  const known = new Set(await knownCohorts(client, projectId, possible));
  const missing = cohorts.find((one) => !known.has(one.id));
  if (missing === undefined) return;
  throw refuse.invalid(
    missing.field,
    `There is no cohort ${missing.id} in this project, or it was deleted.`,
    { code: 'cohort_does_not_exist' },
  );
}

/**
 * Refuses an export that would write the same keys as another one that the actor may see. Anybody can name any bucket,
 * so the exports of strangers count only at runs, which find their manifests. A lock keeps others from saving an export
 * to the same store until the transaction ends, so save this one in the same transaction.
 */
export async function refuseWritingOver(
  client: Transaction,
  actor: Actor,
  exportId: string,
  { target }: PreparedExport,
): Promise<void> {
  if (target === null) return;
  const writers = await lockStoreWriters(client, target.store);
  const others = writers.filter(
    (one) => one.id !== exportId && targetsCollide(target.target, one.write_target as WriteTarget),
  );
  for (const projectId of new Set(others.map((one) => one.project_id))) {
    if (!(await maySeeProject(client, actor, projectId))) continue;
    const other = others.find((one) => one.project_id === projectId) as StoreWriter;
    throw refuse.invalid(
      'destination__config__prefix',
      `This batch export would overwrite the files of the batch export "${other.name}" (${other.id}). Give it another prefix.`,
    );
  }
}
