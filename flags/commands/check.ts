import type { Transaction } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import type { FlagFields, FlagLink } from '../rows/flags.ts';
import { FLAG_LIMITS } from '../rules/limits.ts';
import { circleThrough, nameFlags } from '../rules/links.ts';
import type { FlagChangeDependencies } from './dependencies.ts';

const KEY = /^[a-zA-Z0-9_-]+$/;

/** Refuses what no flag may have as its key. */
export function checkKey(key: string): void {
  if (key === '') throw refuse.invalid('key', 'This field may not be blank.', { code: 'blank' });
  if (!KEY.test(key)) {
    throw refuse.invalid('key', 'Only letters, numbers, hyphens (-) & underscores (_) are allowed.', {
      code: 'invalid_key',
    });
  }
  if (key.length > FLAG_LIMITS.keyCharacters) {
    const message = `Ensure this field has no more than ${FLAG_LIMITS.keyCharacters} characters.`;
    throw refuse.invalid('key', message, { code: 'max_length' });
  }
}

/** Refuses settings of one flag that contradict each other. */
export function checkSettings(fields: FlagFields): void {
  if (fields.bucketing_identifier === 'device_id' && fields.ensure_experience_continuity) {
    throw refuse.invalid(
      'bucketing_identifier',
      "Cannot enable 'persist across authentication steps' when using device ID bucketing. These features are incompatible.",
    );
  }
  if (fields.has_encrypted_payloads && !fields.is_remote_configuration) {
    throw refuse.invalid(
      'has_encrypted_payloads',
      'Encrypted payloads require the flag to be a remote configuration. Set is_remote_configuration too.',
    );
  }
}

/** Refuses what would be more than a project may have. `others` are its other flags. Call it under the lock. */
export function checkRoom(
  { limits }: Pick<FlagChangeDependencies, 'limits'>,
  others: { flags: number; bytes: number },
  filters: string,
): void {
  if (others.flags + 1 > limits.flags) {
    throw refuse.invalid(
      null,
      `A project may have ${limits.flags} feature flags (SLUICE_FLAGS_PER_PROJECT). Delete some that nobody asks for.`,
      { code: 'limit' },
    );
  }
  const bytes = others.bytes + Buffer.byteLength(filters);
  if (bytes > limits.bytes) {
    throw refuse.invalid(
      'filters',
      `The filters of all feature flags of the project would have ${bytes} bytes; ${limits.bytes} are allowed (SLUICE_FLAG_BYTES_PER_PROJECT). Use cohorts for long conditions.`,
      { code: 'limit' },
    );
  }
}

/** Refuses cohorts that the project does not have. Those that it has stay until the transaction ends. */
export async function checkCohorts(
  deps: Pick<FlagChangeDependencies, 'knownCohorts'>,
  client: Transaction,
  projectId: number,
  ids: readonly number[],
): Promise<void> {
  if (ids.length === 0) return;
  const known = new Set(await deps.knownCohorts(client, projectId, ids));
  const missing = ids.find((id) => !known.has(id));
  if (missing === undefined) return;
  throw refuse.invalid('filters', `Cohort with id ${missing} does not exist`, {
    code: 'cohort_does_not_exist',
  });
}

/** Refuses questions about flags that are not there, about itself, and in a circle. Call it under the lock. */
export function checkAsks(own: FlagLink, links: readonly FlagLink[]): void {
  if (own.asks.length === 0) return;
  const byId = new Map(links.map((one) => [one.id, one]));
  for (const id of own.asks) {
    if (id === own.id) throw refuse.invalid('filters', `Feature flag '${own.key}' cannot depend on itself`);
    if (!byId.has(id)) {
      throw refuse.invalid('filters', `Flag dependency references non-existent flag with ID ${id}`);
    }
  }
  byId.set(own.id, own);
  const circle = circleThrough(own.id, byId);
  if (circle) {
    throw refuse.invalid('filters', `Circular dependency detected: ${circle.join(' → ')}`);
  }
  const disabled = own.asks.map((id) => byId.get(id) as FlagLink).filter((one) => !one.active);
  if (own.active && disabled.length > 0) {
    const message = `Cannot enable this feature flag because it depends on disabled flags: ${nameFlags(disabled)}`;
    throw refuse.invalid('filters', message);
  }
}

/** Refuses to take a flag away that others ask about. */
export function checkDependents(
  id: number,
  links: readonly FlagLink[],
  doing: 'delete' | 'disable' | 'archive',
) {
  const asking = links.filter((one) => one.id !== id && one.asks.includes(id));
  const counting = doing === 'delete' ? asking : asking.filter((one) => one.active);
  if (counting.length === 0) return;
  throw refuse.invalid(
    null,
    `Cannot ${doing} this feature flag because other flags depend on it: ${nameFlags(counting)}`,
  );
}

/** Refuses to delete what something else needs: flags that ask about it, or the early access feature that it belongs to. */
export function checkDeletion(id: number, links: readonly FlagLink[], feature: string | undefined): void {
  checkDependents(id, links, 'delete');
  if (feature === undefined) return;
  const message =
    'Cannot delete a feature flag that is in use with early access features. Please delete the early access feature before deleting the flag.';
  throw refuse.invalid('deleted', message, { reason: `The early access feature is called ${feature}.` });
}
