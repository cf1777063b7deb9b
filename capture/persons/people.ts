import { personId } from '../../db/person-ids.ts';
import { type CapturedEvent, storableTime } from '../captured-event.ts';
import { GROUP_IDENTIFY } from './groups.ts';
import { COOKIELESS_ID, mergeOf } from './identity.ts';
import type { PersonNotice } from './notice.ts';
import { type Changes, type Effect, effectOf, own, put } from './update.ts';

type Properties = Record<string, unknown>;

/** The properties of a person, and the same as JSON. */
export interface PropertiesAndText {
  /** Read them with `own`, since a property may be called `constructor`. */
  readonly properties: Readonly<Properties>;
  readonly text: string;
}

/** A person as it is stored. It is never changed here; changes go into a draft. */
export interface StoredPerson extends PropertiesAndText {
  readonly projectId: number;
  readonly id: string;
  /** In milliseconds since 1970. */
  readonly createdAt: number;
  readonly isIdentified: boolean;
  readonly version: number;
  /** When it was last changed, as the horizon counts: microseconds since 2000. */
  readonly changedAt: number;
  /** With values of events that are not carried into what is stored yet. Absent: there are none that anybody knows of. */
  readonly shown?: PropertiesAndText | undefined;
}

/** A person as the events so far have changed it. */
export interface Draft {
  readonly projectId: number;
  readonly id: string;
  /** Undefined if the person is new. */
  readonly stored: StoredPerson | undefined;
  createdAt: number;
  isIdentified: boolean;
  /** What is to be stored. */
  properties: Readonly<Properties>;
  text: string;
  /** What events show: the same, and later values of copied properties. */
  shown: PropertiesAndText;
  /** Properties that are copied from events otherwise, and that were set or removed by name. */
  readonly named: Set<string>;
  /** Whether there is something to store. */
  changed: boolean;
  /** distinct_ids that had no person and now get this one. */
  readonly newIds: string[];
  /** Stored persons that were merged into this one. */
  readonly absorbed: StoredPerson[];
  mergedInto: Draft | undefined;
}

/** The person of an event, as the event's row holds it. */
export interface Actor {
  id: string;
  /** The person's properties, as JSON. */
  properties: string;
  mode: 'full' | 'propertyless' | 'force_upgrade';
}

/** The limit in bytes. The properties are written into each event of the person, so they must not grow without end. */
export const MOST_PROPERTIES = 512 * 1024;
/** An anonymous event is given to the person of its distinct_id if that person was created this long before it. */
const UPGRADE_AFTER = 60_000;
/** Events whose only purpose is to change persons or groups. */
const ABOUT_PERSONS = new Set(['$identify', '$create_alias', '$merge_dangerously', ...GROUP_IDENTIFY]);
const NO_TEXT = '{}';
const NOTHING: PropertiesAndText = Object.freeze({ properties: Object.freeze({}), text: NO_TEXT });

/** A key for a distinct_id of a project. */
export const idKey = (projectId: number, distinctId: string) => `${projectId}:${distinctId}`;

/**
 * Applies the rules of persons to events, one after the other: which person an event belongs to, what it changes, which
 * distinct_ids become one person. Pure: it starts from stored persons and ends with drafts for the caller to write.
 */
export class People {
  /** The draft of each distinct_id that was looked up. It is made from the stored person at the first look-up. */
  readonly #byId = new Map<string, Draft>();
  readonly #drafts = new Map<StoredPerson, Draft>();
  readonly #made: Draft[] = [];
  readonly #known: (projectId: number, distinctId: string) => StoredPerson | undefined;
  readonly #write: (properties: Readonly<Properties>) => string;

  constructor(options: {
    known: (projectId: number, distinctId: string) => StoredPerson | undefined;
    /** Writes properties as JSON that can be stored. */
    write: (properties: Readonly<Properties>) => string;
  }) {
    this.#known = options.known;
    this.#write = options.write;
  }

  /** Applies one event and returns its person. Calls `notice` with what the project should know. */
  apply(projectId: number, captured: CapturedEvent, notice: (notice: PersonNotice) => void): Actor {
    const { distinct_id: distinctId, properties } = captured;
    if (properties.$process_person_profile === false) return this.#anonymous(projectId, captured, notice);

    const merged = this.#merge(projectId, captured, notice);
    let draft = merged ?? this.#find(projectId, distinctId);
    if (!draft) {
      // SDKs make up a distinct_id for each of these events. It should not become a person.
      if (GROUP_IDENTIFY.has(captured.event)) {
        return { id: personId(projectId, distinctId), properties: NO_TEXT, mode: 'full' };
      }
      draft = this.#create(projectId, distinctId, storableTime(captured));
    }
    const effect = effectOf(captured, draft.shown.properties, draft.properties);
    if (effect && !this.#change(draft, effect)) {
      notice({
        reason: 'person_properties_too_large',
        detail: { event: captured.event, distinct_id: distinctId, limit_bytes: MOST_PROPERTIES },
      });
    }
    return { id: draft.id, properties: draft.shown.text, mode: 'full' };
  }

  /** The persons that are new or changed, without those that were merged into others. */
  *outcome(): Generator<Draft> {
    for (const draft of this.#made) {
      if (draft.changed && !draft.mergedInto) yield draft;
    }
  }

  /** The keys of the distinct_ids that were looked up and whose persons are new or changed. */
  changed(): Set<string> {
    const keys = new Set<string>();
    for (const [key, draft] of this.#byId) if (draft.changed || draft.mergedInto) keys.add(key);
    return keys;
  }

  /**
   * The persons as they are after the outcome is stored with this stamp, by the keys of the distinct_ids that were
   * looked up.
   */
  *stored(stamp: number): Generator<[string, StoredPerson]> {
    const after = new Map<Draft, StoredPerson>();
    for (const [key, found] of this.#byId) {
      let draft = found;
      while (draft.mergedInto) draft = draft.mergedInto;
      let person = after.get(draft);
      if (!person) {
        person = afterwards(draft, stamp);
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
    // Before this id was known, somebody may have been given it. The events of all others are not theirs.
    const draft = distinctId === COOKIELESS_ID ? undefined : this.#find(projectId, distinctId);
    if (draft && draft.createdAt < storableTime(captured) - UPGRADE_AFTER) {
      return { id: draft.id, properties: draft.shown.text, mode: 'force_upgrade' };
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
    const shown = stored.shown ?? stored;
    const nothing = { named: new Set<string>(), changed: false, newIds: [], absorbed: [] };
    return this.#keep({ ...draft, shown, ...nothing, mergedInto: undefined });
  }

  #create(projectId: number, distinctId: string, createdAt: number): Draft {
    const draft = this.#keep({
      projectId,
      id: personId(projectId, distinctId),
      stored: undefined,
      createdAt,
      isIdentified: false,
      ...NOTHING,
      shown: NOTHING,
      named: new Set(),
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

  /** Makes the changes. If properties would become too large, changes nothing and returns false. */
  #change(draft: Draft, { shown, stored, named }: Effect): boolean {
    const isNew = draft.stored === undefined;
    // Nobody has stored anything of a new person, so everything is stored with it.
    const kept = isNew ? shown : withNamed(stored, shown, draft.named);
    // Whatever is stored is shown too, so as many changes are the same ones.
    const isSame = draft.shown.properties === draft.properties && shown?.size === kept?.size;
    const nextShown = this.#changed(draft.shown, shown);
    const next = isSame ? nextShown : this.#changed(draft, kept);
    if (!nextShown || !next) return false;
    draft.shown = nextShown;
    for (const name of named) draft.named.add(name);
    if (kept || named.length > 0) {
      draft.properties = next.properties;
      draft.text = next.text;
      draft.changed = true;
    }
    return true;
  }

  /** Returns the properties with the changes, or undefined if they would become too large. */
  #changed(before: PropertiesAndText, changes: Changes | undefined): PropertiesAndText | undefined {
    if (!changes) return before;
    const properties = { ...before.properties };
    for (const [name, value] of changes) put(properties, name, value);
    const text = this.#write(properties);
    // A character takes at most three bytes, so nearly all texts need no counting.
    const mayBeTooLarge = text.length > before.text.length && text.length * 3 > MOST_PROPERTIES;
    if (mayBeTooLarge && Buffer.byteLength(text) > MOST_PROPERTIES) return undefined;
    return { properties, text };
  }

  /**
   * Makes the merge that the event asks for. Returns the person of both distinct_ids, or undefined if there is no
   * merge.
   */
  #merge(
    projectId: number,
    captured: CapturedEvent,
    notice: (notice: PersonNotice) => void,
  ): Draft | undefined {
    const merge = mergeOf(captured);
    if (!merge) return undefined;
    const { into, from, ifIdentified, illegal } = merge;
    const about = { event: captured.event, distinct_id: captured.distinct_id, into, from };
    if (illegal !== undefined) {
      notice({ reason: 'cannot_merge_with_illegal_distinct_id', detail: { ...about, illegal } });
      return undefined;
    }
    const target = this.#find(projectId, into);
    const source = from === undefined ? undefined : this.#find(projectId, from);
    if (target && source && target !== source) {
      const turns = ifIdentified === 'turn' && source.isIdentified && !target.isIdentified;
      const [stays, goes] = turns ? [source, target] : [target, source];
      if (goes.isIdentified && ifIdentified !== 'absorb') {
        notice({ reason: 'cannot_merge_already_identified', detail: about });
        // They are two people, each known by an id. Without this mark, a later `$identify` could absorb this one.
        this.#identify(stays);
        return undefined;
      }
      this.#absorb(stays, goes, () => {
        notice({
          reason: 'person_properties_too_large',
          detail: { ...about, limit_bytes: MOST_PROPERTIES },
        });
      });
      return stays;
    }
    const person = target ?? source ?? this.#create(projectId, into, storableTime(captured));
    if (!target && source) this.#adopt(person, into);
    if (!source && from !== undefined) this.#adopt(person, from);
    this.#identify(person);
    return person;
  }

  #identify(person: Draft): void {
    if (person.isIdentified) return;
    person.isIdentified = true;
    person.changed = true;
  }

  /** Gives the person a distinct_id that had no person. */
  #adopt(person: Draft, distinctId: string): void {
    person.newIds.push(distinctId);
    person.changed = true;
    this.#byId.set(idKey(person.projectId, distinctId), person);
  }

  /** Merges the source into the target. Where both have a property, the target's value stays. */
  #absorb(target: Draft, source: Draft, tooLarge: () => void): void {
    const inherited: Changes = new Map();
    for (const [name, value] of Object.entries(source.shown.properties)) {
      if (own(target.properties, name) === undefined) inherited.set(name, value);
    }
    const effect = {
      ...{ shown: inherited, stored: inherited },
      named: [...source.named].filter((name) => inherited.has(name)),
    };
    if (inherited.size > 0 && !this.#change(target, effect)) tooLarge();
    target.createdAt = Math.min(target.createdAt, source.createdAt);
    target.isIdentified = true;
    target.changed = true;
    target.newIds.push(...source.newIds);
    target.absorbed.push(...source.absorbed);
    if (source.stored) target.absorbed.push(source.stored);
    source.mergedInto = target;
  }
}

/** The person of a draft after it is stored with this stamp. */
function afterwards(draft: Draft, stamp: number): StoredPerson {
  const { projectId, id, stored, createdAt, isIdentified, properties, text, changed } = draft;
  const shown = draft.shown.properties === properties ? undefined : draft.shown;
  if (stored && !changed) return shown === stored.shown ? stored : { ...stored, shown };
  const version = stored ? stored.version + 1 : 0;
  return { projectId, id, createdAt, isIdentified, version, changedAt: stamp, properties, text, shown };
}

/**
 * The changes that are stored at once. What an event of a transaction sets by name, its later events change at once: they have the
 * same stamp, so nobody could tell later which of them came last.
 */
function withNamed(
  stored: Changes | undefined,
  shown: Changes | undefined,
  named: ReadonlySet<string>,
): Changes | undefined {
  if (!shown || named.size === 0) return stored;
  const more = [...named].filter((name) => shown.has(name) && !stored?.has(name));
  return more.length === 0
    ? stored
    : new Map([...(stored ?? []), ...more.map((name) => [name, shown.get(name)] as const)]);
}
