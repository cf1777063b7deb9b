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

/** Builds what a program of a type sees of a stored event. */
export function globalsOfStored(row: StoredEvent, facts: OtherFacts, type: FunctionTypeName): Globals {
  const { uuid, event, distinct_id, timestamp, elements_chain } = row;
  const properties = JSON.parse(row.properties) as Record<string, unknown>;
  const globals = programGlobals({
    ...facts,
    event: { uuid, event, distinct_id, properties, timestamp, elements_chain },
    person:
      row.person_mode === PERSONLESS
        ? null
        : { id: row.person_id, properties: JSON.parse(row.person_properties) },
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
