import type { Queryable } from '../../db/pool.ts';
import { refuse } from '../../refusals.ts';
import { isObject } from '../../values/json-object.ts';
import { findStoredEvent, newestEvents } from '../rows/events.ts';
import type { CompiledContent } from '../rules/definition.ts';
import type { Frame } from '../rules/frame.ts';
import {
  completeGlobals,
  type Facts,
  filterGlobals,
  type Globals,
  programGlobals,
} from '../rules/globals.ts';
import { globalsOfStored, type OtherFacts, type StoredEvent } from '../rules/stored-event.ts';
import type { FunctionTypeName } from '../rules/types.ts';
import { filtersOf } from '../rules/variants.ts';
import type { Runner } from '../runner.ts';
import { lookUpListed } from '../static-cohorts.ts';

/** Where the event comes from with which a function is tried. The first that is given counts. */
export interface SampleQuery extends Pick<CompiledContent, 'filters' | 'mappings'> {
  globals?: Globals | null | undefined;
  /** An event as a row: `properties` and `person_properties` are JSON. */
  clickhouse_event?: Record<string, unknown> | null | undefined;
  event_id?: string | null | undefined;
  use_newest_event?: boolean | undefined;
  type: FunctionTypeName;
  facts: OtherFacts;
  frame: Frame;
}

const AT_ONCE = 50;
/** How many events are searched for one that matches. */
const MOST_SEARCHED = 1_000;

/** Reads events, in a turn of its own. */
export type Read = <T>(work: (client: Queryable) => Promise<T>) => Promise<T>;

/** Returns what a program sees of the event with which a function is tried. */
export async function sampleEvent(
  { runner }: { runner: Runner },
  read: Read,
  query: SampleQuery,
  signal?: AbortSignal,
): Promise<Globals> {
  const { globals, clickhouse_event: row, event_id: uuid, facts } = query;
  const { project } = facts;
  if (globals?.event) return completeGlobals(globals, facts);
  if (row) return programGlobals({ ...facts, ...factsOfRow(row) });
  if (uuid) {
    const found = await read((client) => findStoredEvent(client, project.id, uuid));
    if (!found) throw refuse.invalid('event_id', `This project has no event with the uuid ${uuid}.`);
    return globalsOfStored(found, facts, query.type);
  }
  if (!query.use_newest_event) throw refuse.invalid(null, 'Missing event');
  let before: StoredEvent | null = null;
  for (let searched = 0; searched < MOST_SEARCHED; searched += AT_ONCE) {
    const position: StoredEvent | null = before;
    const page: StoredEvent[] = await read((client) => newestEvents(client, project.id, position, AT_ONCE));
    const persons = page.map(({ person_id }) => person_id);
    const listed = await lookUpListed(read, project.id, [filtersOf(query)], persons);
    for (const one of page) {
      const candidate = globalsOfStored(one, facts, query.type);
      const listedIn = listed(one.person_id);
      if (await isWanted(runner, query, candidate, listedIn, signal)) return candidate;
    }
    before = page.at(-1) ?? null;
    if (page.length < AT_ONCE) break;
  }
  throw refuse.invalid('use_newest_event', `None of the newest ${MOST_SEARCHED} events matches the filters.`);
}

/** Answers whether the function, or one of its mappings, would run for an event. */
async function isWanted(
  runner: Runner,
  { frame, facts, ...content }: SampleQuery,
  globals: Globals,
  listedIn: readonly number[],
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const { own, mappings } = filtersOf(content);
  const job = { filters: [own, ...(mappings ?? [])], globals: filterGlobals(globals, listedIn), frame };
  const [matches, ...others] = await runner.match(facts.project.id, job, signal);
  return matches?.matched === true && (mappings === null || others.some(({ matched }) => matched));
}

/** Reads a JSON object out of a text, or takes one as it is. */
function objectOf(value: unknown, field: string): Record<string, unknown> {
  if (value === undefined || value === null || value === '') return {};
  try {
    const found: unknown = typeof value === 'string' ? JSON.parse(value) : value;
    if (isObject(found)) return found as Record<string, unknown>;
  } catch {
    // The refusal below says what is expected.
  }
  throw refuse.invalid(`clickhouse_event__${field}`, 'Expected an object as JSON.');
}

function factsOfRow(row: Record<string, unknown>): Pick<Facts, 'event' | 'person' | 'groups'> {
  const text = (field: string) => (row[field] === undefined || row[field] === null ? '' : String(row[field]));
  const personId = text('person_id');
  return {
    event: {
      ...{ uuid: text('uuid'), event: text('event'), distinct_id: text('distinct_id') },
      properties: objectOf(row.properties, 'properties'),
      ...{ timestamp: text('timestamp'), elements_chain: text('elements_chain') },
    },
    person: personId
      ? { id: personId, properties: objectOf(row.person_properties, 'person_properties') }
      : null,
    groups: [],
  };
}
