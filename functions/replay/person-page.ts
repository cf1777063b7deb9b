import { randomInt } from 'node:crypto';
import { uuidv7 } from '../../db/uuid.ts';
import { knownOf } from '../dispatch/definitions.ts';
import {
  type BroadcastInvocation,
  type BroadcastPerson,
  enqueueBroadcast,
  nextPersons,
} from '../rows/broadcasts.ts';
import { reactingFunction } from '../rows/reacting.ts';
import type { ReplayRow } from '../rows/replays.ts';
import { programGlobals } from '../rules/globals.ts';
import { lookUpListed } from '../static-cohorts.ts';
import type { FoundPage, PageDependencies } from './event-page.ts';
import { broadcastEvent } from './match-persons.ts';

/** How many persons a page has. */
const PAGE = 500;

/**
 * Finds out for which of the next persons the function runs, up to so many invocations. Null: there are no more persons, or
 * the function is gone.
 */
export async function personPage(
  { pool, matcher, site }: PageDependencies,
  row: ReplayRow,
  { most, signal }: { most: number; signal: AbortSignal },
): Promise<FoundPage | null> {
  const found = await reactingFunction(pool, row.project_id, row.function_id);
  const fn = found?.functions[0];
  if (!found || !fn) return null;
  const persons = await nextPersons(pool, row, PAGE);
  if (persons.length === 0) return null;
  const { definitions } = knownOf(found, 0, site);
  const mappings =
    definitions.triggers[0]?.mappings?.flatMap(({ filters, isDisabled }, index) =>
      isDisabled ? [] : [{ index, filters }],
    ) ?? null;
  const filters = { own: row.bytecode, mappings: mappings?.map((one) => one.filters) ?? null };
  const ids = persons.map(({ id }) => id);
  const listed = await lookUpListed((work) => work(pool), row.project_id, [filters], ids);
  const answers = await matcher.persons(
    row.project_id,
    {
      ...{ bytecode: row.bytecode, mappings },
      persons: persons.map((one) => ({ ...one, listed_in: listed(one.id) })),
    },
    signal,
  );
  const counts = { scanned: 0, matched: 0, filterErrors: 0 };
  const queued: BroadcastInvocation[] = [];
  const invocationsOf = (person: BroadcastPerson, chosen: readonly (number | null)[]) => {
    const uuid = uuidv7();
    const globals = programGlobals({
      ...{ project: found.project, site, source: { id: fn.id, name: fn.name } },
      ...{ event: broadcastEvent(person, uuid), groups: [] },
      person: { id: person.id, properties: JSON.parse(person.properties) },
    });
    return chosen.map(
      (mapping): BroadcastInvocation => ({
        ...{ id: uuidv7(), projectId: row.project_id, functionId: fn.id, version: fn.version, mapping },
        ...{ distinctId: person.distinct_id, personId: person.id, seed: randomInt(2 ** 31) },
        globals,
      }),
    );
  };
  let last: BroadcastPerson | undefined;
  for (const [index, person] of persons.entries()) {
    if (!row.dry_run && queued.length >= most) break;
    last = person;
    const { mappings: chosen, error } = answers[index] ?? { mappings: [] };
    counts.scanned += 1;
    if (error !== undefined) counts.filterErrors += 1;
    if (chosen.length > 0) counts.matched += 1;
    queued.push(...invocationsOf(person, chosen));
  }
  return {
    done: {
      ...counts,
      ...{ lastTimestamp: null, lastId: (last as BroadcastPerson).id, masked: 0, queued: queued.length },
    },
    async write(client) {
      return row.dry_run ? queued.length : enqueueBroadcast(client, queued);
    },
  };
}
