import { type Pool, transaction } from '../../db/pool.ts';
import { type CohortMember, Cohorts, personProperty, withInitial } from '../../properties/index.ts';
import type { Work } from '../../tenancy/product.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import {
  type PersonToCount,
  type ProjectToCount,
  projectsToCount,
  readPersons,
  storeCounts,
  storeMembers,
  timeNow,
} from '../rows/counting.ts';
import { readCohortDefinitions } from '../rows/definitions.ts';

/** So many minutes after the last count, persons may have changed enough for another one. */
const FRESH_MINUTES = 15;

function memberOf({ properties, cohorts }: PersonToCount): CohortMember {
  const known = parseExactJson(properties) as Record<string, unknown>;
  const lookUp = (key: string) => (Object.hasOwn(known, key) ? known[key] : undefined);
  return {
    property: (key) => personProperty(lookUp, key),
    inStatic: (id) => cohorts.includes(id),
  };
}

/**
 * Writes down who is in the cohorts of a project that are not static, for queries and counts. It decides as flags do. All
 * cohorts are decided in one pass over the persons. Returns how many cohorts there are.
 */
export async function countMembers(
  pool: Pool,
  { project_id: projectId, timezone }: ProjectToCount,
  { signal, beat }: Work,
  now: () => number = Date.now,
): Promise<number> {
  // What is changed from now on is seen as changed after the count.
  const at = await timeNow(pool);
  const rows = await readCohortDefinitions(pool, projectId);
  const cohorts = new Cohorts(
    rows.map((row) => ({ id: row.id, isStatic: row.is_static, filters: parseExactJson(row.filters) })),
  );
  const ids = rows.filter((row) => !row.is_static).map((row) => row.id);
  const decidable = ids.filter((id) => cohorts.failureOf(id) === undefined);
  const needs = decidable.map((id) => cohorts.needs(id));
  const wanted = {
    names: [...new Set(withInitial(needs.flatMap((one) => one.properties)))],
    staticCohorts: [...new Set(needs.flatMap((one) => one.staticCohorts))],
  };
  const moment = { now: now(), timezone };
  let after: string | null = null;
  for (;;) {
    signal.throwIfAborted();
    const persons: PersonToCount[] = await readPersons(pool, projectId, after, wanted);
    const upTo = persons.at(-1)?.id ?? null;
    const members = persons.flatMap((person) => {
      const member = memberOf(person);
      return decidable.flatMap((cohortId) =>
        cohorts.decide(cohortId, member, moment) === true ? [{ cohortId, personId: person.id }] : [],
      );
    });
    const range = { after, upTo };
    await transaction(pool, (client) => storeMembers(client, projectId, range, ids, members));
    beat({ project_id: projectId, after });
    if (upTo === null) break;
    after = upTo;
  }
  await storeCounts(
    pool,
    projectId,
    at,
    ids.map((id) => ({ id, failure: cohorts.failureOf(id) ?? null })),
  );
  return ids.length;
}

/** Counts the cohorts of all projects that need it. */
export async function countCohorts(pool: Pool, work: Work): Promise<number> {
  let counted = 0;
  for (const project of await projectsToCount(pool, FRESH_MINUTES)) {
    counted += await countMembers(pool, project, work);
  }
  return counted;
}
