import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import type { FlagFields, FlagKey, FlagRow } from '../rows/flags.ts';
import { findRevision } from '../rows/revisions.ts';
import { changeFlag } from './change.ts';
import type { FlagCommandDependencies } from './dependencies.ts';

/** Makes a flag again what it was in a version. That is a further version, checked like any other change. */
export async function rollBackFlag(
  deps: FlagCommandDependencies,
  actor: Actor,
  key: FlagKey,
  version: number,
): Promise<FlagRow> {
  const revision = await findRevision(deps.pool, key, version);
  if (!revision) throw refuse.invalid('version', `The flag has no version ${version}.`);
  const { deleted, filters, ...fields } = parseExactJson(revision.document) as Omit<FlagFields, 'filters'> & {
    filters: Record<string, unknown>;
  };
  if (deleted) throw refuse.invalid('version', `The flag was deleted in version ${version}.`);
  return changeFlag(deps, actor, key, { ...fields, filters, replacesFilters: true });
}
