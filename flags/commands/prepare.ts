// What a change of a flag makes of it, without a lock: reading patterns and sealing payloads take long.

import { refuse } from '../../refusals.ts';
import { SecretError } from '../../secrets/envelope.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { isObject } from '../../values/json-object.ts';
import { own } from '../engine/definition.ts';
import { areKept, NoKeysError, openPayloads, type Payloads, sealPayloads } from '../reads/payloads.ts';
import type { FlagFields, FlagRow } from '../rows/flags.ts';
import { ENCRYPTED_MARK, isEncryptedMark } from '../rules/encrypted-mark.ts';
import { checkFilters } from '../validation/filters.ts';
import { checkKey, checkSettings } from './check.ts';
import type { FlagChangeDependencies, FlagInput } from './dependencies.ts';

/** A flag as it will be stored, and what has to be compared with others under the lock. */
export interface PreparedFlag {
  fields: FlagFields;
  /** The flags and cohorts that its filters ask about. */
  asks: number[];
  cohorts: number[];
  /** Payloads that are sealed for a new flag when its id is known. Null: there are none. */
  secrets: Payloads | null;
  /** Whether encrypted payloads are replaced. The activity log tells this, and not what they are. */
  replacesSecrets: boolean;
}

const NO_CONDITIONS = { groups: [] };
const RETRY_SECONDS = 30;

const payloadsOf = (filters: Record<string, unknown>): Payloads => {
  const payloads = own(filters, 'payloads');
  return isObject(payloads) ? (payloads as Payloads) : {};
};

function orRefused<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof NoKeysError) && !(error instanceof SecretError)) throw error;
    throw refuse.unavailable(`The payloads cannot be encrypted: ${error.message}`, RETRY_SECONDS);
  }
}

/** Takes the marks for the payloads that they stand for. */
function revealed(
  deps: Pick<FlagChangeDependencies, 'keyring'>,
  given: Payloads,
  before: FlagRow | undefined,
) {
  const stored =
    before && Object.values(given).some(isEncryptedMark) ? openPayloads(deps.keyring, before) : {};
  return Object.fromEntries(
    Object.entries(given).map(([key, value]) => {
      if (!isEncryptedMark(value)) return [key, value];
      const kept = own(stored, key);
      if (typeof kept === 'string') return [key, kept];
      const message = `payloads.${key} is the mark of an encrypted payload, and no such payload is stored.`;
      throw refuse.invalid('filters', message);
    }),
  );
}

const marked = (filters: Record<string, unknown>) => ({
  ...filters,
  payloads: Object.fromEntries(Object.keys(payloadsOf(filters)).map((key) => [key, ENCRYPTED_MARK])),
});

/** Makes marks of what is not JSON without its quotes, so that a mark is checked like a payload. */
function withWholeMarks(filters: Record<string, unknown>): Record<string, unknown> {
  const payloads = own(filters, 'payloads');
  if (!isObject(payloads)) return filters;
  const entries = Object.entries(payloads).map(([key, value]) => [
    key,
    isEncryptedMark(value) ? ENCRYPTED_MARK : value,
  ]);
  return { ...filters, payloads: Object.fromEntries(entries) };
}

/** Adds the marks of encrypted payloads that a change leaves out: nobody who cannot read a payload takes it away by the way. */
function withKeptMarks(
  filters: Record<string, unknown>,
  stored: Record<string, unknown>,
): Record<string, unknown> {
  const given = own(filters, 'payloads') ?? {};
  return isObject(given) ? { ...filters, payloads: { ...payloadsOf(stored), ...given } } : filters;
}

/** Prepares a new flag, or a change of the one that is stored. */
export function prepareFlag(
  deps: Pick<FlagChangeDependencies, 'keyring'>,
  before: FlagRow | undefined,
  { filters: given, ...settings }: FlagInput,
  { replacesFilters = false } = {},
): PreparedFlag {
  if (settings.key !== undefined || !before) checkKey(settings.key ?? '');
  const fields: FlagFields = { ...(before ?? DEFAULTS), ...withoutUndefined(settings) };
  const prepared: PreparedFlag = {
    fields,
    asks: before?.asks ?? [],
    cohorts: before?.asks_cohorts ?? [],
    secrets: null,
    replacesSecrets: false,
  };
  const { is_remote_configuration: isRemoteConfiguration, has_encrypted_payloads: encrypts } = fields;
  checkSettings(fields);
  const changesFilters = before ? given !== undefined && Object.keys(given).length > 0 : true;
  const stored = parseExactJson(before?.filters ?? '{}') as Record<string, unknown>;
  let filters = stored;
  if (changesFilters) {
    let merged = before && !replacesFilters ? { ...stored, ...given } : (given ?? NO_CONDITIONS);
    if (encrypts && before?.has_encrypted_payloads && !replacesFilters)
      merged = withKeptMarks(merged, stored);
    const checked = checkFilters(withWholeMarks(merged), {
      isNew: !before && given !== undefined,
      isRemoteConfiguration,
    });
    // A flag without filters is one for nobody yet.
    filters = before || given || isRemoteConfiguration ? checked.filters : NO_CONDITIONS;
    prepared.asks = checked.asks;
    prepared.cohorts = checked.cohorts;
  }
  if (encrypts) encrypt(deps, before, filters, prepared);
  else {
    if (before?.has_encrypted_payloads) filters = withoutMarks(filters);
    else refuseMarks(filters);
    fields.sealed_payloads = null;
  }
  const text = JSON.stringify(encrypts ? marked(filters) : filters);
  if (changesFilters || encrypts !== before?.has_encrypted_payloads) fields.filters = text;
  return prepared;
}

function encrypt(
  deps: Pick<FlagChangeDependencies, 'keyring'>,
  before: FlagRow | undefined,
  filters: Record<string, unknown>,
  prepared: PreparedFlag,
): void {
  const given = payloadsOf(filters);
  const kept = before?.has_encrypted_payloads
    ? Object.keys(payloadsOf(parseExactJson(before.filters) as Record<string, unknown>))
    : [];
  if (before && areKept(given, kept)) return;
  const secrets = orRefused(() => revealed(deps, given, before));
  prepared.replacesSecrets = true;
  if (!before) {
    // The id of the flag is a part of what seals it, and is not known yet. Without keys, nothing begins.
    orRefused(() => sealPayloads(deps.keyring, 0, secrets));
    prepared.secrets = Object.keys(secrets).length > 0 ? secrets : null;
    return;
  }
  prepared.fields.sealed_payloads =
    Object.keys(secrets).length > 0 ? orRefused(() => sealPayloads(deps.keyring, before.id, secrets)) : null;
}

/** Whoever switches encryption off without new payloads has none: the encrypted ones are not shown in this way. */
function withoutMarks(filters: Record<string, unknown>): Record<string, unknown> {
  const entries = Object.entries(payloadsOf(filters)).filter(([, value]) => !isEncryptedMark(value));
  return { ...filters, payloads: Object.fromEntries(entries) };
}

function refuseMarks(filters: Record<string, unknown>): void {
  const key = Object.entries(payloadsOf(filters)).find(([, value]) => isEncryptedMark(value))?.[0];
  if (key === undefined) return;
  const message = `payloads.${key} is the mark of an encrypted payload, and the flag does not encrypt its payloads.`;
  throw refuse.invalid('filters', message);
}

const DEFAULTS: FlagFields = {
  ...{ key: '', name: '', filters: '{}', active: true, archived: false, deleted: false },
  ...{ ensure_experience_continuity: false, is_remote_configuration: false, has_encrypted_payloads: false },
  ...{ sealed_payloads: null, evaluation_runtime: 'all', bucketing_identifier: 'distinct_id' },
  ...{ evaluation_contexts: [], tags: [] },
};

/** Leaves out the keys without a value. */
const withoutUndefined = (input: object) =>
  Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)) as Partial<FlagFields>;
