import { refuse } from '../../refusals.ts';
import type { Actor } from '../../tenancy/actor.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { type FlagFields, type FlagKey, type FlagRow, findFlag } from '../rows/flags.ts';
import { findRevision } from '../rows/revisions.ts';
import { changeFlag } from './change.ts';
import type { FlagCommandDependencies } from './dependencies.ts';

/** Says why a flag does not have a version. */
export const noVersion = (flag: Pick<FlagRow, 'version'>, version: number): string =>
  version >= 1 && version <= flag.version
    ? `Version ${version} of the flag is no longer kept.`
    : `The flag has no version ${version}.`;

/** Makes a flag again what it was in a version. That is a further version, checked like any other change. */
export async function rollBackFlag(
  deps: FlagCommandDependencies,
  actor: Actor,
  key: FlagKey,
  version: number,
): Promise<FlagRow> {
  const revision = await findRevision(deps.pool, key, version);
  if (!revision) {
    const flag = await findFlag(deps.pool, key);
    if (!flag) throw refuse.absent();
    throw refuse.invalid('version', noVersion(flag, version));
  }
  const { deleted, filters, ...fields } = parseExactJson(revision.document) as Omit<FlagFields, 'filters'> & {
    filters: Record<string, unknown>;
  };
  if (deleted) throw refuse.invalid('version', `The flag was deleted in version ${version}.`);
  return changeFlag(deps, actor, key, { ...fields, filters, replacesFilters: true });
}
