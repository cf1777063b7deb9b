import { type Pool, transaction } from '../../db/pool.ts';
import { type CohortMember, Cohorts, personProperty, withInitial } from '../../properties/index.ts';
import type { Work } from '../../tenancy/product.ts';
import { parseExactJson } from '../../values/exact-json.ts';
import {
  beginCount,
  endCount,
  keepCount,
  type PersonToCount,
  type ProjectToCount,
  projectsToCount,
  readPersons,
  storeCounts,
  storeMembers,
} from '../rows/counting.ts';
import { readCohortDefinitionsAt } from '../rows/definitions.ts';

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

/** The time that counting takes, in milliseconds. */
export interface CountPace {
  /** How long the cohorts of one project are counted before those of the next one get their turn. */
  turn: number;
  /** How long all projects are counted. What is left then goes on the next time. */
  pass: number;
  clock: () => number;
}

const PACE: CountPace = { turn: 5_000, pass: 45_000, clock: Date.now };

/**
 * Writes down who is in the cohorts of a project that are not static, for queries and counts. It decides as flags do. All
 * cohorts are decided in one pass over the persons, as they were when the count began. It ends at the latest when its turn is
 * over, and the next call goes on there. Returns how many cohorts are counted. Undefined: there is more to do.
 */
async function countMembers(
  pool: Pool,
  { project_id: projectId, timezone }: ProjectToCount,
  { signal, beat }: Work,
  isOver: () => boolean,
): Promise<number | undefined> {
  const running = await transaction(pool, (client) => beginCount(client, projectId));
  const rows = await readCohortDefinitionsAt(pool, projectId, running.startedAt);
  const definitions = rows.map((row) => ({
    ...{ id: row.id, isStatic: row.is_static },
    filters: parseExactJson(row.filters),
  }));
  const cohorts = new Cohorts(definitions);
  const ids = rows.filter((row) => !row.is_static).map((row) => row.id);
  const decidable = ids.filter((id) => cohorts.failureOf(id) === undefined);
  const needs = decidable.map((id) => cohorts.needs(id));
  const wanted = {
    names: [...new Set(withInitial(needs.flatMap((one) => one.properties)))],
    staticCohorts: [...new Set(needs.flatMap((one) => one.staticCohorts))],
  };
  const moment = { now: running.moment, timezone };
  for (;;) {
    signal.throwIfAborted();
    const { after } = running;
    const persons: PersonToCount[] = await readPersons(pool, projectId, after, wanted);
    const upTo = persons.at(-1)?.id ?? null;
    const members = persons.flatMap((person) => {
      const member = memberOf(person);
      return decidable.flatMap((cohortId) =>
        cohorts.decide(cohortId, member, moment) === true ? [{ cohortId, personId: person.id }] : [],
      );
    });
    for (const { cohortId } of members) {
      running.counts.set(cohortId, (running.counts.get(cohortId) ?? 0) + 1);
    }
    running.after = upTo;
    const goesOn = await transaction(pool, async (client) => {
      const isOurs =
        upTo === null
          ? await endCount(client, projectId, running, definitions.some(looksAtTime))
          : await keepCount(client, projectId, running);
      if (!isOurs) return false;
      await storeMembers(client, projectId, { after, upTo }, ids, members);
      if (upTo !== null) return true;
      const counted = ids.map((id) => ({
        ...{ id, count: running.counts.get(id) ?? 0, failure: cohorts.failureOf(id) ?? null },
      }));
      await storeCounts(client, projectId, running.startedAt, counted);
      return false;
    });
    beat({ project_id: projectId, after });
    if (!goesOn) return ids.length;
    if (isOver()) return undefined;
  }
}

/** Whether a cohort may get other members because time passes. */
const looksAtTime = ({ filters }: { filters: unknown }): boolean =>
  JSON.stringify(filters).includes('"is_date_');

/**
 * Counts the cohorts of all projects that need it. Projects take turns, those first that were worked on longest ago, so that
 * one with many persons and cohorts holds up nobody. Returns how many cohorts are counted.
 */
export async function countCohorts(pool: Pool, work: Work, pace: Partial<CountPace> = {}): Promise<number> {
  const { turn, pass, clock } = { ...PACE, ...pace };
  const end = clock() + pass;
  const waiting = await projectsToCount(pool, FRESH_MINUTES);
  const failures: unknown[] = [];
  let counted = 0;
  for (let project = waiting.shift(); project; project = waiting.shift()) {
    const turnEnd = clock() + turn;
    try {
      const cohorts = await countMembers(pool, project, work, () => clock() >= turnEnd);
      if (cohorts === undefined) waiting.push(project);
      else counted += cohorts;
    } catch (error) {
      work.signal.throwIfAborted();
      failures.push(error);
    }
    if (clock() >= end) break;
  }
  if (failures.length > 0) throw failures[0];
  return counted;
}
