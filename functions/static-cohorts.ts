// Static cohorts in filters. A filter sees the ids of those that list the person, and whoever asks it looks them up before.
import type { Queryable } from '../db/pool.ts';
import { type Bytecode, Op } from '../hog/bytecode/index.ts';
import { COHORT_IDS } from '../properties/index.ts';
import { isUuid } from '../values/uuid.ts';
import { listedPersons } from './rows/listed-persons.ts';
import type { FunctionFilters } from './rules/variants.ts';

/** Returns the static cohorts that filters ask for. */
export const staticCohortsOf = (all: readonly FunctionFilters[]): number[] => [
  ...new Set(all.flatMap(({ own, mappings }) => [own, ...(mappings ?? [])].flatMap(staticCohortsIn))),
];

/** In the code, the id stands before the list in which it is looked up. */
function staticCohortsIn(code: Bytecode | null): number[] {
  return (code ?? []).flatMap((one, at, all) =>
    one === COHORT_IDS && all[at - 1] === Op.STRING && all[at - 3] === Op.INTEGER
      ? [all[at - 2] as number]
      : [],
  );
}

/** The static cohorts that list a person, of those that were looked up. */
export type Listed = (personId: unknown) => readonly number[];

const NOWHERE: readonly number[] = [];
/** How Postgres writes the id of a person. Undefined: nobody has such an id. */
const written = (id: unknown): string | undefined =>
  typeof id === 'string' && isUuid(id) ? id.toLowerCase() : undefined;

/** Looks persons up in the static cohorts that filters ask for, in one statement. There is none if they ask for none. */
export async function lookUpListed(
  read: <T>(work: (client: Queryable) => Promise<T>) => Promise<T>,
  projectId: number,
  filters: readonly FunctionFilters[],
  personIds: readonly unknown[],
): Promise<Listed> {
  const cohorts = staticCohortsOf(filters);
  const persons = [...new Set(personIds.flatMap((id) => written(id) ?? []))];
  if (cohorts.length === 0 || persons.length === 0) return () => NOWHERE;
  const found = await read((client) => listedPersons(client, projectId, cohorts, persons));
  return (id) => found.get(written(id) ?? '') ?? NOWHERE;
}
