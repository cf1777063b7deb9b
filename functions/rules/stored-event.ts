import { createHash } from 'node:crypto';
import type { Frame } from './frame.ts';
import { type Facts, type Globals, programGlobals, seenBy } from './globals.ts';
import type { FunctionTypeName } from './types.ts';

/** An event with its person and groups, as they were when it came in. */
export interface StoredEvent {
  uuid: string;
  event: string;
  distinct_id: string;
  /** As JSON. */
  properties: string;
  timestamp: string;
  /** When the API received it. */
  created_at: string;
  elements_chain: string;
  person_id: string;
  person_mode: string;
  /** As JSON. */
  person_properties: string;
  groups: { type: string; index: number; key: string; properties: Record<string, unknown> }[] | null;
  /** The static cohorts that list the person, of those that filters name. Absent: nobody has looked. */
  listed_in?: readonly number[];
}

/** What is known beside the event. */
export type OtherFacts = Pick<Facts, 'project' | 'site' | 'source'>;

const PERSONLESS = 'propertyless';

/** What the JSON of an event says. Programs get copies of it, so many of them can have the same. */
interface Said {
  properties: Record<string, unknown>;
  /** Null: the event has no person. */
  ofPerson: Record<string, unknown> | null;
}

const read = (row: StoredEvent): Said => ({
  properties: JSON.parse(row.properties),
  ofPerson: row.person_mode === PERSONLESS ? null : JSON.parse(row.person_properties),
});

const inUse = new WeakMap<StoredEvent, Record<keyof Said, WeakRef<Record<string, unknown>> | null>>();

/** Reads the JSON of an event, unless somebody still has what it says. */
export function readTogether(row: StoredEvent): Said {
  const known = inUse.get(row);
  const properties = known?.properties?.deref();
  const ofPerson = known?.ofPerson?.deref() ?? null;
  if (properties && (ofPerson || !known?.ofPerson)) return { properties, ofPerson };
  const said = read(row);
  inUse.set(row, {
    properties: new WeakRef(said.properties),
    ofPerson: said.ofPerson && new WeakRef(said.ofPerson),
  });
  return said;
}

/** Builds what a program of a type sees of a stored event. */
export function globalsOfStored(
  row: StoredEvent,
  facts: OtherFacts,
  type: FunctionTypeName,
  { properties, ofPerson }: Said = read(row),
): Globals {
  const { uuid, event, distinct_id, timestamp, elements_chain } = row;
  const globals = programGlobals({
    ...facts,
    event: { uuid, event, distinct_id, properties, timestamp, elements_chain },
    person: ofPerson && { id: row.person_id, properties: ofPerson },
    groups: row.groups ?? [],
  });
  return seenBy(type, globals);
}

/**
 * The frame of a run with a stored event: the time when it came in, and random numbers that follow from its uuid. Two runs
 * with the same event therefore differ only if their programs do.
 */
export const frameOf = ({ uuid, created_at }: Pick<StoredEvent, 'uuid' | 'created_at'>): Frame => ({
  now: Date.parse(created_at),
  seed: seedOf(uuid),
});

/** What the random numbers of a run with this event follow from. */
export const seedOf = (uuid: string): number => createHash('sha256').update(uuid).digest().readUInt32LE(0);
