// Finds out for which persons a broadcast runs a function. It is called in threads.
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { matches, surroundingsIn } from '../evaluate.ts';
import type { BroadcastPerson } from '../rows/broadcasts.ts';
import { type EventFacts, filterGlobalsOf } from '../rules/globals.ts';
import { frameOf } from '../rules/stored-event.ts';

export interface MatchPersonsJob {
  /** The conditions of the broadcast. */
  bytecode: Bytecode | null;
  /** The filters of the mappings that run. Null: the function has none, and runs once. */
  mappings: { index: number; filters: Bytecode | null }[] | null;
  persons: BroadcastPerson[];
}

/** What a broadcast is to do for a person: the mappings that run; null stands for the function without any. */
export interface MatchedPerson {
  mappings: (number | null)[];
  error?: string;
}

/** The event with which a broadcast runs a function for a person. */
export const broadcastEvent = ({ distinct_id, created_at }: BroadcastPerson, uuid: string): EventFacts => ({
  ...{ uuid, event: '$broadcast', distinct_id, properties: {}, timestamp: created_at, elements_chain: '' },
});

/** Answers for each of the persons. */
export function matchPersons({ bytecode, mappings, persons }: MatchPersonsJob): MatchedPerson[] {
  return persons.map((person) => {
    const { id, created_at } = person;
    const properties = JSON.parse(person.properties) as Record<string, unknown>;
    const globals = filterGlobalsOf(broadcastEvent(person, id), { id, properties }, [], person.listed_in);
    const around = () => surroundingsIn(frameOf({ uuid: id, created_at }));
    const verdict = matches(bytecode, globals, around());
    if (!verdict.matched) return { mappings: [], ...(verdict.error ? { error: verdict.error } : {}) };
    if (mappings === null) return { mappings: [null] };
    return {
      mappings: mappings.flatMap(({ index, filters }) =>
        matches(filters, globals, around()).matched ? [index] : [],
      ),
    };
  });
}
