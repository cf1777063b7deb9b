import { eachInTurns } from '../../db/loop-turns.ts';
import {
  absorbPersons,
  insertDistinctIds,
  insertPersons,
  lockPersons,
  type PersonMerge,
  updatePersons,
} from '../../db/person-writes.ts';
import type { Transaction } from '../../db/pool.ts';
import type { PersonNotice } from '../persons/notice.ts';
import { type Actor, type Draft, idKey, People } from '../persons/people.ts';
import { PersonConflictError } from './errors.ts';
import { MANY, type PendingEvent, type PersonOfEvent, propertiesText } from './event-row.ts';
import { GroupTypes, resolveGroups } from './groups.ts';
import { type EarlyLook, type Names, namesOf, namesOfMany, PersonReader } from './person-reader.ts';
import { type PersonTurn, PersonTurns } from './person-turns.ts';

interface ResolvedPersons {
  /** The person of each event, in the order of the events. */
  persons: readonly PersonOfEvent[];
  notices: ReadonlyMap<PendingEvent, readonly PersonNotice[]>;
  /** Call it after the commit. */
  committed(): PersonChanges;
  /** Call it at the end in any case, committed or not. */
  ended(): void;
}

/** How many persons a transaction created, changed, and merged into others. */
export interface PersonChanges {
  created: number;
  changed: number;
  merged: number;
}

/** How the transaction that stores events finds, creates and changes their persons and groups. */
export interface PersonRule {
  /**
   * The query for the persons, to be sent together with the one that opens the transaction: that saves a round trip.
   * Undefined if the answer would probably be outdated when it is needed.
   */
  askEarly(events: readonly PendingEvent[]): EarlyLook | undefined;
  /**
   * Finds and changes the persons of a transaction. It is called once for each transaction, after it is known which
   * events are new and before their rows are written. `client` belongs to the transaction, `stamp` is its inserted_at,
   * `asked` is what `askEarly` returned for the same events.
   */
  resolve(
    client: Transaction,
    events: readonly PendingEvent[],
    stamp: string,
    asked?: EarlyLook,
  ): Promise<ResolvedPersons>;
}

const CACHE_BYTES = 48 * 1024 * 1024;
/** How often a transaction reads persons again that others have changed meanwhile, before it gives up. */
const MOST_LOOKS = 10;

/** Told of persons that became part of others, in the transaction that makes them so and holds the locks on them. */
export type PersonsMerged = (client: Transaction, merges: readonly PersonMerge[]) => Promise<void>;

/** Writes the changes of the persons. The transaction already holds locks on those that are stored. */
async function write(
  client: Transaction,
  drafts: readonly Draft[],
  stamp: string,
  personsMerged?: PersonsMerged,
): Promise<PersonChanges> {
  const mappings = drafts.flatMap(({ projectId, id, newIds }) =>
    newIds.map((distinctId) => ({ projectId, distinctId, personId: id })),
  );
  if (mappings.length > 0 && !(await insertDistinctIds(client, mappings, stamp))) {
    throw new PersonConflictError('A distinct_id got a person in another transaction at the same time.');
  }
  const created = drafts.filter((draft) => !draft.stored);
  if (created.length > 0) await insertPersons(client, created, stamp);
  const changed = drafts.filter((draft) => draft.stored);
  if (changed.length > 0) await updatePersons(client, changed, stamp);
  const merges = drafts.flatMap(({ projectId, id, absorbed }) =>
    absorbed.map((one) => ({ projectId, absorbedId: one.id, intoId: id })),
  );
  if (merges.length > 0) {
    await absorbPersons(client, merges, stamp);
    await personsMerged?.(client, merges);
  }
  return { created: created.length, changed: changed.length, merged: merges.length };
}

interface Work {
  names: Names;
  turn: PersonTurn;
  early: EarlyLook | undefined;
}

/** The rule that makes persons and groups from events. Any number of processes may run it at the same time. */
export function createPersonRule(personsMerged?: PersonsMerged): PersonRule {
  const reader = new PersonReader(CACHE_BYTES);
  const groupTypes = new GroupTypes();
  const turns = new PersonTurns();

  /** Applies the rules, then locks the persons that change. Repeats both until no other transaction was faster. */
  async function settle(client: Transaction, events: readonly PendingEvent[], { names, turn, early }: Work) {
    const locked = new Map<string, number>();
    for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
      const found = await (looks === 0 && early ? early.found() : reader.look(client, names));
      const people = new People({
        known: (projectId, distinctId) => found.get(idKey(projectId, distinctId)),
        write: propertiesText,
      });
      const notices = new Map<PendingEvent, PersonNotice[]>();
      const actors: Actor[] = new Array(events.length);
      const applying = eachInTurns(events, MANY, (pending, index) => {
        actors[index] = people.apply(pending.projectId, pending.event, (notice) => {
          notices.set(pending, [...(notices.get(pending) ?? []), notice]);
        });
      });
      if (applying) await applying;
      const drafts = [...people.outcome()];
      turns.settle(turn, people.changed());
      const touched = drafts.flatMap(({ stored, absorbed }) => (stored ? [stored, ...absorbed] : absorbed));
      const open = touched.filter((one) => locked.get(idKey(one.projectId, one.id)) !== one.version);
      if (open.length === 0) return { actors, notices, drafts, people };
      const versions = await lockPersons(client, open);
      for (const [index, { projectId, id }] of open.entries()) {
        const version = versions[index];
        if (version !== undefined) locked.set(idKey(projectId, id), version);
      }
      if (open.every((one) => locked.get(idKey(one.projectId, one.id)) === one.version)) {
        return { actors, notices, drafts, people };
      }
      // Another transaction was faster. Read again; more of the persons are locked now.
    }
    throw new PersonConflictError('Others change the same persons all the time.');
  }

  async function resolve(
    client: Transaction,
    events: readonly PendingEvent[],
    stamp: string,
    work: Work,
  ): Promise<ResolvedPersons> {
    const early = new Map<PendingEvent, PersonNotice[]>();
    const groups = await resolveGroups(client, events, groupTypes, (event, notice) => {
      early.set(event, [...(early.get(event) ?? []), notice]);
    });
    const { actors, notices, drafts, people } = await settle(client, events, work);
    const changes = await write(client, drafts, stamp, personsMerged);
    await groups.write(client, stamp);
    for (const [event, own] of early) notices.set(event, [...own, ...(notices.get(event) ?? [])]);
    return {
      persons: actors.map((actor, index) => {
        const keys = groups.keysOf(events[index] as PendingEvent);
        return keys ? { ...actor, groups: keys } : actor;
      }),
      notices,
      committed() {
        groups.committed();
        reader.remember(people.stored(Number(stamp)));
        return changes;
      },
      ended: () => turns.end(work.turn),
    };
  }

  return {
    askEarly: (events) =>
      turns.isLively || events.length > MANY ? undefined : reader.lookEarly(namesOf(events)),
    async resolve(client, events, stamp, asked) {
      const names = asked?.names ?? (events.length > MANY ? await namesOfMany(events) : namesOf(events));
      const { turn, hasWaited } = await turns.begin(names);
      try {
        return await resolve(client, events, stamp, { names, turn, early: hasWaited ? undefined : asked });
      } catch (error) {
        turns.end(turn);
        throw error;
      }
    },
  };
}
