import { firstDistinctIds } from '../../db/persons.ts';
import type { Pool } from '../../db/pool.ts';
import type { QueryAnswer } from '../../queries/commands/ask.ts';
import { MOST_BYTES } from '../../queries/rules/request.ts';
import { refuse } from '../../refusals.ts';
import { SHOWN_IN_LIST } from '../people/person-schema.ts';
import { type DistinctIds, shownPersons } from './answer.ts';

/** So many persons are looked up at once. */
const AT_ONCE = 1_000;

/** Reads the distinct ids of the persons that an answer shows. */
export async function distinctIdsOf(
  pool: Pool,
  projectId: number,
  answer: Pick<QueryAnswer, 'columns' | 'rows'>,
): Promise<DistinctIds> {
  const persons = shownPersons(answer);
  const all = new Map<string, string[]>();
  let letters = 0;
  for (let at = 0; at < persons.length; at += AT_ONCE) {
    const some = persons.slice(at, at + AT_ONCE);
    const ids = some.map((one) => JSON.parse(one) as string);
    const found = await firstDistinctIds(pool, projectId, ids, SHOWN_IN_LIST);
    for (const [index, one] of some.entries()) {
      const own = found.get(ids[index] as string) ?? [];
      all.set(one, own);
      for (const id of own) letters += id.length;
    }
    if (letters > MOST_BYTES) throw tooLarge();
  }
  return all;
}

const tooLarge = () =>
  refuse.invalid(
    'query',
    `The distinct ids of these persons are larger than ${MOST_BYTES / 1024 / 1024} MiB. Ask for fewer persons.`,
  );
