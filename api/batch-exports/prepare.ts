import { requireModel } from '../../destinations/registry.ts';
import {
  checkSettings,
  type DestinationSettings,
  patchSettings,
  shownSettings,
} from '../../destinations/settings.ts';
import { exportQuery } from '../../exports/reads/query.ts';
import { openSettings, sealSettings } from '../../exports/reads/settings.ts';
import { type StoredTarget, writeTargetOf } from '../../exports/reads/write-target.ts';
import type { BatchExportFields, BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { Parser } from '../../hog/parser/index.ts';
import { type ModelQuery, readSelection } from '../../models/index.ts';
import type { Keyring } from '../../secrets/envelope.ts';
import { errors } from '../errors.ts';
import type { BatchExportPatch } from '../exports/export-schema.ts';
import { cadenceFields } from './cadence.ts';
import { refusing } from './refusals.ts';

export interface Preparation {
  parser: Parser;
  keyring: Keyring | undefined;
}

export interface Subject {
  projectId: number;
  exportId: string;
  /** As it is stored; absent: it is to be made. */
  current?: BatchExportRow | undefined;
}

export interface PreparedExport {
  fields: BatchExportFields;
  /** With the secrets, if the body said anything about the destination. */
  settings: DestinationSettings;
  target: StoredTarget | null;
  /** What it exports, of some interval. */
  query: ModelQuery;
  /** Names of secrets that the body sent. */
  secrets: string[];
}

const invalid = (attr: string, detail: string, code = 'invalid_input') =>
  errors.validation(code, detail, attr);

/** What an export is after this body: everything checked that can be known without connecting anywhere. */
export function prepareExport(
  { parser, keyring }: Preparation,
  subject: Subject,
  body: BatchExportPatch,
): Promise<PreparedExport> {
  return refusing(async () => {
    const { current, exportId, projectId } = subject;
    const model = modelOf(current, body);
    const cadence = cadenceFields(current, body);
    const bounds = boundsOf(current, body);
    const settings = settingsOf(keyring, current, body);
    requireModel(settings.type, model);
    requireEventsForNames(settings, model);
    const stored =
      current && !body.destination
        ? {
            destination_type: current.destination_type,
            config: current.config,
            secrets: current.secrets,
          }
        : sealSettings(keyring, exportId, settings);
    const asked = body.hogql_query === undefined ? current?.hogql_query : body.hogql_query;
    const hogqlQuery = asked?.trim() ? asked : null;
    const filters = body.filters === undefined ? (current?.filters ?? null) : body.filters;
    const content = { model, filters, hogql_query: hogqlQuery, timezone: cadence.timezone };
    // With any interval: what is wrong with the settings is wrong with them all.
    const query = await exportQuery(
      parser,
      { ...content, ...stored, project_id: projectId },
      { start: null, end: Date.now() },
    );
    const target = writeTargetOf(settings, { model, interval: cadence.interval });
    const shown = shownSettings(settings).config;
    return {
      settings,
      target,
      query,
      secrets: Object.keys(body.destination?.config ?? {}).filter((key) => !Object.hasOwn(shown, key)),
      fields: {
        ...content,
        ...cadence,
        ...bounds,
        ...stored,
        name: body.name ?? current?.name ?? '',
        paused: body.paused ?? current?.paused ?? false,
        last_paused_at: given(body.last_paused_at, current?.last_paused_at),
        schema: hogqlQuery === null ? null : (await readSelection(hogqlQuery, parser)).schema,
        write_store: target?.store ?? null,
        write_target: target?.target ?? null,
      },
    };
  });
}

const given = <T>(sent: T | null | undefined, stored: T | null | undefined): T | null =>
  sent === undefined ? (stored ?? null) : sent;

function modelOf(current: BatchExportRow | undefined, body: BatchExportPatch): BatchExportRow['model'] {
  const model = body.model ?? current?.model ?? 'events';
  if (current && model !== current.model) {
    throw invalid('model', 'Changing models is not supported. Create a new batch export instead.');
  }
  return model;
}

function boundsOf(current: BatchExportRow | undefined, body: BatchExportPatch) {
  const start = given(body.start_at, current?.start_at);
  const end = given(body.end_at, current?.end_at);
  if (start !== null && end !== null && Date.parse(start) >= Date.parse(end)) {
    throw invalid(body.end_at ? 'end_at' : 'start_at', "'start_at' must be before 'end_at'");
  }
  return { start_at: start, end_at: end };
}

function settingsOf(
  keyring: Keyring | undefined,
  current: BatchExportRow | undefined,
  { destination: sent }: BatchExportPatch,
): DestinationSettings {
  if (!current) return checkSettings({ type: sent?.type ?? '', config: sent?.config ?? {} });
  const { destination_type: type, config } = current;
  // Without its secrets: they are neither shown nor changed.
  if (!sent) return { type, config };
  const stored = openSettings(keyring, current);
  return patchSettings(stored, { type: sent.type ?? type, config: sent.config ?? {} });
}

/** Only events have names: a list of them would be a limit that does nothing. */
function requireEventsForNames({ config }: DestinationSettings, model: string): void {
  for (const key of ['include_events', 'exclude_events']) {
    const names = config[key];
    if (model !== 'events' && Array.isArray(names) && names.length > 0) {
      throw invalid(
        `destination__config__${key}`,
        `'${key}' is only supported for 'events' not '${model}' model`,
      );
    }
  }
}
