import { firstDistinctIds } from '../../db/persons.ts';
import type { Pool } from '../../db/pool.ts';
import type { QueryAnswer } from '../../queries/commands/ask.ts';
import { SHOWN_IN_LIST } from '../people/person-schema.ts';
import { type DistinctIds, shownPersons } from './answer.ts';

/** Reads the distinct ids of the persons that an answer shows. */
export async function distinctIdsOf(
  pool: Pool,
  projectId: number,
  answer: Pick<QueryAnswer, 'columns' | 'rows'>,
): Promise<DistinctIds> {
  const persons = shownPersons(answer);
  if (persons.length === 0) return new Map();
  const ids = persons.map((one) => JSON.parse(one) as string);
  const found = await firstDistinctIds(pool, projectId, ids, SHOWN_IN_LIST);
  return new Map(persons.map((one, index) => [one, found.get(ids[index] as string) ?? []]));
}
