import { type CapturedEvent, storableTime } from '../captured-event.ts';
import { GROUP_IDENTIFY } from './groups.ts';
import { isIllegalId, mergeOf, personId } from './identity.ts';
import type { PersonNotice } from './notice.ts';
import { type Changes, changesOf, own, put } from './update.ts';

type Properties = Record<string, unknown>;

/** A person as it is stored. Never changed: what an event does to it goes into a draft. */
export interface StoredPerson {
  readonly projectId: number;
  readonly id: string;
  /** Milliseconds. */
  readonly createdAt: number;
  readonly isIdentified: boolean;
  readonly version: number;
  /** When it was changed last, in the horizon's microseconds since 2000. */
  readonly changedAt: number;
  /** Only to be asked by `own`: `constructor` is a name like any other. */
  readonly properties: Readonly<Properties>;
  /** The same as JSON. */
  readonly text: string;
}

/** A person as it is to be after the events so far. */
export interface Draft {
  readonly projectId: number;
  readonly id: string;
  /** Undefined: not stored yet. */
  readonly stored: StoredPerson | undefined;
  createdAt: number;
  isIdentified: boolean;
  properties: Readonly<Properties>;
  text: string;
  changed: boolean;
  /** Ids that come to this person and were nobody's. */
  readonly newIds: string[];
  /** Stored persons that this one has taken in. */
  readonly absorbed: StoredPerson[];
  mergedInto: Draft | undefined;
}

/** Who did an event, as far as its row tells. */
export interface Actor {
  id: string;
  /** JSON text. */
  properties: string;
  mode: 'full' | 'propertyless' | 'force_upgrade';
}

/** A person's properties are written into each of its events, so they must not grow without end. */
export const MOST_PROPERTIES = 512 * 1024;
/** An anonymous event counts as the person's own when the person was there this long before. */
const UPGRADE_AFTER = 60_000;
/** Events that have no other purpose than to change persons or groups. */
const ABOUT_PERSONS = new Set(['$identify', '$create_alias', '$merge_dangerously', ...GROUP_IDENTIFY]);
const NO_PROPERTIES: Readonly<Properties> = Object.freeze({});
const NO_TEXT = '{}';

/** One text for a distinct_id of a project. */
export const idKey = (projectId: number, distinctId: string) => `${projectId}:${distinctId}`;

/**
 * The rules of persons, applied to events one after the other: who they belong to, what they change, which ids
 * become one person. Pure: it starts from persons that were read and ends with drafts that are to be written.
 */
export class People {
  /** Of each distinct_id that the events name; made from the stored person when it is first asked for. */
  readonly #byId = new Map<string, Draft>();
  readonly #drafts = new Map<StoredPerson, Draft>();
  readonly #made: Draft[] = [];
  readonly #known: (projectId: number, distinctId: string) => StoredPerson | undefined;
  readonly #write: (properties: Readonly<Properties>) => string;

  constructor(options: {
    known: (projectId: number, distinctId: string) => StoredPerson | undefined;
    /** Properties as JSON that can be stored. */
    write: (properties: Readonly<Properties>) => string;
  }) {
    this.#known = options.known;
    this.#write = options.write;
  }

  /** What becomes of one event; `notice` is told what the project should know. */
  apply(projectId: number, captured: CapturedEvent, notice: (notice: PersonNotice) => void): Actor {
    const { distinct_id: distinctId, properties } = captured;
    if (properties.$process_person_profile === false) return this.#anonymous(projectId, captured, notice);

    const merged = this.#merge(projectId, captured, notice);
    let draft = merged ?? this.#find(projectId, distinctId);
    if (!draft) {
      // SDKs make up an id for each of these: a person of it would be nobody.
      if (GROUP_IDENTIFY.has(captured.event)) {
        return { id: personId(projectId, distinctId), properties: NO_TEXT, mode: 'full' };
      }
      draft = this.#create(projectId, distinctId, storableTime(captured));
    }
    const changes = changesOf(captured, draft.properties);
    if (changes && !this.#change(draft, changes)) {
      notice({
        reason: 'person_properties_too_large',
        detail: { event: captured.event, distinct_id: distinctId, limit_bytes: MOST_PROPERTIES },
      });
    }
    return { id: draft.id, properties: draft.text, mode: 'full' };
  }

  /** Persons that are new or different from what was read, without those that were taken in. */
  *outcome(): Generator<Draft> {
    for (const draft of this.#made) {
      if (draft.changed && !draft.mergedInto) yield draft;
    }
  }

  /** The keys of the ids that were asked for and whose persons are new or different from what was read. */
  changed(): Set<string> {
    const keys = new Set<string>();
    for (const [key, draft] of this.#byId) if (draft.changed || draft.mergedInto) keys.add(key);
    return keys;
  }

  /** The persons as they are once the outcome is stored with this stamp, by the keys of the ids that were asked for. */
  *stored(stamp: number): Generator<[string, StoredPerson]> {
    const after = new Map<Draft, StoredPerson>();
    for (const [key, found] of this.#byId) {
      let draft = found;
      while (draft.mergedInto) draft = draft.mergedInto;
      let person = draft.changed ? after.get(draft) : draft.stored;
      if (!person) {
        const { projectId, id, createdAt, isIdentified, properties, text } = draft;
        const version = draft.stored ? draft.stored.version + 1 : 0;
        person = { projectId, id, createdAt, isIdentified, version, changedAt: stamp, properties, text };
        after.set(draft, person);
      }
      yield [key, person];
    }
  }

  #anonymous(projectId: number, captured: CapturedEvent, notice: (notice: PersonNotice) => void): Actor {
    const { event, distinct_id: distinctId } = captured;
    if (ABOUT_PERSONS.has(event)) {
      notice({ reason: 'person_processing_disabled', detail: { event, distinct_id: distinctId } });
    }
    const draft = this.#find(projectId, distinctId);
    if (draft && draft.createdAt < storableTime(captured) - UPGRADE_AFTER) {
      return { id: draft.id, properties: draft.text, mode: 'force_upgrade' };
    }
    return { id: personId(projectId, distinctId), properties: NO_TEXT, mode: 'propertyless' };
  }

  #find(projectId: number, distinctId: string): Draft | undefined {
    const key = idKey(projectId, distinctId);
    let draft = this.#byId.get(key);
    if (!draft) {
      const stored = this.#known(projectId, distinctId);
      if (!stored) return undefined;
      draft = this.#drafts.get(stored) ?? this.#draftOf(stored);
    }
    while (draft.mergedInto) draft = draft.mergedInto;
    this.#byId.set(key, draft);
    return draft;
  }

  #draftOf(stored: StoredPerson): Draft {
    const { projectId, id, createdAt, isIdentified, properties, text } = stored;
    const draft = { projectId, id, stored, createdAt, isIdentified, properties, text };
    return this.#keep({ ...draft, changed: false, newIds: [], absorbed: [], mergedInto: undefined });
  }

  #create(projectId: number, distinctId: string, createdAt: number): Draft {
    const draft = this.#keep({
      projectId,
      id: personId(projectId, distinctId),
      stored: undefined,
      createdAt,
      isIdentified: false,
      properties: NO_PROPERTIES,
      text: NO_TEXT,
      changed: true,
      newIds: [distinctId],
      absorbed: [],
      mergedInto: undefined,
    });
    this.#byId.set(idKey(projectId, distinctId), draft);
    return draft;
  }

  #keep(draft: Draft): Draft {
    this.#made.push(draft);
    if (draft.stored) this.#drafts.set(draft.stored, draft);
    return draft;
  }

  /** Answers false, with nothing changed, when the properties would become too large. */
  #change(draft: Draft, changes: Changes): boolean {
    const properties = { ...draft.properties };
    for (const [name, value] of changes) put(properties, name, value);
    const text = this.#write(properties);
    // A character takes three bytes at most, so that nearly all texts need no counting.
    const mayBeTooLarge = text.length > draft.text.length && text.length * 3 > MOST_PROPERTIES;
    if (mayBeTooLarge && Buffer.byteLength(text) > MOST_PROPERTIES) return false;
    draft.properties = properties;
    draft.text = text;
    draft.changed = true;
    return true;
  }

  /** Joins what the event says to be one person; the person of both, or undefined when there is nothing to join. */
  #merge(
    projectId: number,
    captured: CapturedEvent,
    notice: (notice: PersonNotice) => void,
  ): Draft | undefined {
    const merge = mergeOf(captured);
    if (!merge) return undefined;
    const { into, from, always } = merge;
    const about = { event: captured.event, distinct_id: captured.distinct_id, into, from };
    const illegal = [into, from].find(isIllegalId);
    if (illegal !== undefined) {
      notice({ reason: 'cannot_merge_with_illegal_distinct_id', detail: { ...about, illegal } });
      return undefined;
    }
    const [target, source] = [this.#find(projectId, into), this.#find(projectId, from)];
    if (target && source && target !== source) {
      if (source.isIdentified && !always) {
        notice({ reason: 'cannot_merge_already_identified', detail: about });
        return undefined;
      }
      this.#absorb(target, source, () => {
        notice({
          reason: 'person_properties_too_large',
          detail: { ...about, limit_bytes: MOST_PROPERTIES },
        });
      });
      return target;
    }
    const person = target ?? source ?? this.#create(projectId, into, storableTime(captured));
    if (!target && source) this.#adopt(person, into);
    if (!source) this.#adopt(person, from);
    if (!person.isIdentified) {
      person.isIdentified = true;
      person.changed = true;
    }
    return person;
  }

  /** An id that was nobody's becomes the person's. */
  #adopt(person: Draft, distinctId: string): void {
    person.newIds.push(distinctId);
    person.changed = true;
    this.#byId.set(idKey(person.projectId, distinctId), person);
  }

  /** The source becomes part of the target, whose own properties win. */
  #absorb(target: Draft, source: Draft, tooLarge: () => void): void {
    const inherited: Changes = new Map();
    for (const [name, value] of Object.entries(source.properties)) {
      if (own(target.properties, name) === undefined) inherited.set(name, value);
    }
    if (inherited.size > 0 && !this.#change(target, inherited)) tooLarge();
    target.createdAt = Math.min(target.createdAt, source.createdAt);
    target.isIdentified = true;
    target.changed = true;
    target.newIds.push(...source.newIds);
    target.absorbed.push(...source.absorbed);
    if (source.stored) target.absorbed.push(source.stored);
    source.mergedInto = target;
  }
}
