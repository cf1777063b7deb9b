import type { Queryable } from '../../db/pool.ts';
import { cohortsNamedBy } from '../../properties/index.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import { knownCohorts, listCohortVersions, listSources } from '../rows/definitions.ts';

/** A cohort for products that put its conditions into their own. */
export interface ReachedCohort {
  id: number;
  name: string;
  isStatic: boolean;
  /** JSON, spelled as it was stored. */
  filters: string;
  version: number;
}

/** The largest id that the database has. */
const MAX_ID = 2 ** 31 - 1;
const possible = (ids: readonly number[]) => ids.filter((id) => id > 0 && id <= MAX_ID);
/** More than these together cannot be inlined by anybody. */
const MOST_REACHED = 500;

/** Reads cohorts of a project, and all that they name. One that is missing, deleted or of another project is left out. */
async function reached(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<ReachedCohort[]> {
  const found = new Map<number, ReachedCohort>();
  const asked = new Set(ids);
  for (let next = possible(ids); next.length > 0 && found.size < MOST_REACHED; ) {
    const rows = await listSources(queryable, projectId, next);
    next = [];
    for (const { is_static: isStatic, ...row } of rows) {
      found.set(row.id, { ...row, isStatic });
      const definition = { id: row.id, isStatic, filters: parseExactJson(row.filters) };
      for (const id of cohortsNamedBy(definition)) {
        if (asked.has(id)) continue;
        asked.add(id);
        next.push(...possible([id]));
      }
    }
  }
  return [...found.values()].toSorted((a, b) => a.id - b.id);
}

/** Returns the versions of cohorts of a project, as far as they exist. Each change of a cohort makes another version. */
async function versions(
  queryable: Queryable,
  projectId: number,
  ids: readonly number[],
): Promise<Map<number, number>> {
  const rows = await listCohortVersions(queryable, projectId, possible(ids));
  return new Map(rows.map(({ id, version }) => [id, version]));
}

/** What products need that put the conditions of cohorts into their own. */
export const cohortsToInline = { reached, versions, known: knownCohorts };
