/** A flag as it is stored, with its filters parsed. */
export interface FlagDefinition {
  id: number;
  key: string;
  version: number;
  filters: unknown;
  ensureExperienceContinuity: boolean;
  runtime: 'all' | 'client' | 'server';
  bucketing: 'distinct_id' | 'device_id';
  contexts: readonly string[];
  isRemoteConfiguration: boolean;
  hasEncryptedPayloads: boolean;
  isActive: boolean;
  /** Values that were set by hand, by distinct id. */
  overrides: ReadonlyMap<string, boolean | string>;
}

/** What a record has under a name itself. Names such as `constructor` are data. */
export const own = (record: Record<string, unknown>, name: string): unknown =>
  Object.hasOwn(record, name) ? record[name] : undefined;
