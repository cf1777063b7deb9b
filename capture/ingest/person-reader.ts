import { LRUCache } from 'lru-cache';
import type { FollowUp } from '../../db/follow-up.ts';
import { eachInTurns } from '../../db/loop-turns.ts';
import {
  type FoundPerson,
  findPersons,
  findPersonsAfter,
  type VersionedPersonRow,
  type Wanted,
} from '../../db/person-writes.ts';
import type { Transaction } from '../../db/pool.ts';
import { mergeOf } from '../persons/identity.ts';
import { idKey, type StoredPerson } from '../persons/people.ts';
import { MANY, type PendingEvent } from './event-row.ts';

/** distinct_ids, by the key that `idKey` makes of them. */
export type Names = ReadonlyMap<string, { projectId: number; distinctId: string }>;
/** Persons, by the same keys of their distinct_ids. */
type Found = ReadonlyMap<string, StoredPerson>;

/** A query for persons that is sent together with the one that opens the transaction. */
export interface EarlyLook {
  readonly names: Names;
  readonly next: FollowUp<unknown>;
  found(): Promise<Found>;
}

/** Collects every distinct_id that events mention, once. */
function collector() {
  const names = new Map<string, { projectId: number; distinctId: string }>();
  const add = (projectId: number, distinctId: string) => {
    const key = idKey(projectId, distinctId);
    if (!names.has(key)) names.set(key, { projectId, distinctId });
  };
  return {
    names,
    add({ projectId, event }: PendingEvent): void {
      add(projectId, event.distinct_id);
      const merge = mergeOf(event);
      if (!merge) return;
      add(projectId, merge.into);
      if (merge.from !== undefined) add(projectId, merge.from);
    },
  };
}

export function namesOf(events: readonly PendingEvent[]): Names {
  const { names, add } = collector();
  for (const one of events) add(one);
  return names;
}

/** The same for any number of events: others have their turn in between. */
export async function namesOfMany(events: readonly PendingEvent[]): Promise<Names> {
  const { names, add } = collector();
  await eachInTurns(events, MANY, add);
  return names;
}

function storedOf(row: VersionedPersonRow): StoredPerson {
  const text = row.properties;
  return {
    projectId: row.project_id,
    id: row.id,
    createdAt: row.created_at,
    isIdentified: row.is_identified,
    version: row.version,
    changedAt: row.changed_at,
    properties: JSON.parse(text),
    text,
  };
}

/** Reads persons. Postgres sends only those that have changed since they were remembered. */
export class PersonReader {
  /**
   * Persons as they were last seen, by their distinct_ids. One is never used without asking Postgres whether its version
   * is still the current one; if it is, Postgres need not send the properties.
   */
  readonly #cache: LRUCache<string, StoredPerson>;

  constructor(cacheBytes: number) {
    this.#cache = new LRUCache({ maxSize: cacheBytes, sizeCalculation: sizeOf });
  }

  async look(client: Transaction, names: Names): Promise<Found> {
    const wanted = this.#wanted(names);
    return join(names, wanted, await findPersons(client, wanted));
  }

  lookEarly(names: Names): EarlyLook {
    const wanted = this.#wanted(names);
    const { next, found } = findPersonsAfter(wanted);
    return { names, next, found: async () => join(names, wanted, await found()) };
  }

  remember(persons: Iterable<[string, StoredPerson]>): void {
    for (const [key, person] of persons) this.#cache.set(key, person);
  }

  #wanted(names: Names): Remembered[] {
    const wanted: Remembered[] = [];
    for (const [key, { projectId, distinctId }] of names) {
      wanted.push({ projectId, distinctId, known: this.#cache.get(key) });
    }
    return wanted;
  }
}

type Remembered = Wanted & { known: StoredPerson | undefined };

function join(names: Names, wanted: readonly Remembered[], rows: readonly FoundPerson[]): Found {
  const keys = [...names.keys()];
  const found = new Map<string, StoredPerson>();
  // Two distinct_ids of one person must map to the same object.
  const byPerson = new Map<string, StoredPerson>();
  for (const { at, row } of rows) {
    const seen = row ? storedOf(row) : (wanted[at]?.known as StoredPerson);
    const name = idKey(seen.projectId, seen.id);
    const person = byPerson.get(name) ?? seen;
    byPerson.set(name, person);
    found.set(keys[at] as string, person);
  }
  return found;
}

/** About how many bytes a person takes besides its properties. */
const OVERHEAD = 300;
/** The properties are kept twice, as text and as values. */
const BYTES_PER_CHARACTER = 3;

const sizeOf = ({ text, shown }: StoredPerson) =>
  OVERHEAD + (text.length + (shown?.text.length ?? 0)) * BYTES_PER_CHARACTER;
