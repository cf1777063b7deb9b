import { type DefinitionKind, MOST_DEFINITIONS, type Remembered } from '../../db/definitions.ts';
import type { CapturedEvent } from '../captured-event.ts';
import { type NameSink, nameKey, type SeenName, showProperties, storedName } from './names.ts';
import { propertyTypeOf } from './property-type.ts';
import { LookRhythm } from './rhythm.ts';

/** So many names of a project wait to be written. Further ones are news again when they come again. */
const MOST_WAITING = 500;
/** How long a project whose table is full shows nothing new. */
const FULL_FOR = 5 * 60_000;
/** About how much a name takes in memory besides its letters. */
const ENTRY_BYTES = 120;

interface Known {
  /** When the table wants to hear of it again. */
  dueAt: number;
  isTyped: boolean;
  /** Which events of this name are looked at. Undefined: it is no event. */
  rhythm: LookRhythm | undefined;
}

type ByKind<T> = Record<DefinitionKind, T>;
const byKind = <T>(make: () => T): ByKind<T> => ({
  event: make(),
  event_property: make(),
  person_property: make(),
  group_property: make(),
});

/** Tells the names of one kind apart. */
const keyWithin = (groupType: string, name: string) => (groupType === '' ? name : `${groupType}\0${name}`);
const bytesOf = (name: string) => ENTRY_BYTES + 2 * name.length;

/** What this process knows about the names of one project: those that the table has, and those that wait to be written. */
export class ProjectNames implements NameSink {
  readonly projectId: number;
  /** When an event was looked at last. */
  usedAt = 0;
  /** About the memory that the known names take. */
  bytes = 0;
  readonly #known = byKind(() => new Map<string, Known>());
  /** Until when the table takes no new names of a kind. */
  readonly #fullUntil = byKind(() => 0);
  readonly #waiting = new Map<string, SeenName>();
  readonly #strangers = new LookRhythm();

  constructor(projectId: number) {
    this.projectId = projectId;
  }

  get isWaiting(): boolean {
    return this.#waiting.size > 0;
  }

  look(event: CapturedEvent): void {
    const now = event.received_at;
    this.usedAt = now;
    this.see('event', '', event.event, undefined);
    const rhythm = this.#known.event.get(event.event)?.rhythm ?? this.#strangers;
    if (rhythm.isDue(now)) rhythm.found(showProperties(event, this), now);
  }

  see(kind: DefinitionKind, groupType: string, name: string, value: unknown): boolean {
    const known = this.#find(kind, groupType, name);
    // Most names end here.
    if (known && known.dueAt > this.usedAt && (known.isTyped || typeof value === 'object')) return false;
    const type = kind === 'event' ? null : propertyTypeOf(name, value, this.usedAt);
    return this.#offer(known, { kind, groupType, name, type });
  }

  /** Learns of a name that another thread has seen. */
  meet(seen: SeenName): void {
    const known = this.#find(seen.kind, seen.groupType, seen.name);
    if (known && known.dueAt > this.usedAt && (known.isTyped || seen.type === null)) return;
    this.#offer(known, seen);
  }

  #find(kind: DefinitionKind, groupType: string, name: string): Known | undefined {
    return this.#known[kind].get(keyWithin(groupType, name));
  }

  #offer(known: Known | undefined, { kind, groupType, name, type }: SeenName): boolean {
    if (!known && this.#fullUntil[kind] > this.usedAt) return false;
    const key = nameKey({ kind, groupType, name });
    const waiting = this.#waiting.get(key);
    if (waiting) waiting.type ??= type;
    if (waiting || this.#waiting.size >= MOST_WAITING) return false;
    const stored = storedName(name);
    if (stored === undefined) return false;
    this.#waiting.set(key, { kind, groupType, name: stored, type });
    return !known;
  }

  /** Takes the names that wait. */
  take(): SeenName[] {
    const names = [...this.#waiting.values()];
    this.#waiting.clear();
    return names;
  }

  /** Lets names wait again that could not be written. */
  giveBack(names: readonly SeenName[]): void {
    for (const one of names) if (this.#waiting.size < MOST_WAITING) this.#waiting.set(nameKey(one), one);
  }

  /** Learns what became of names that were written. */
  written(names: readonly SeenName[], answers: readonly Remembered[], now: number): void {
    for (const [index, { kind, groupType, name }] of names.entries()) {
      const { isKept, isFull, isTyped, dueInMs } = answers[index] as Remembered;
      if (isFull) this.#fullUntil[kind] = now + FULL_FOR;
      const map = this.#known[kind];
      const key = keyWithin(groupType, name);
      const before = map.get(key);
      if (isKept) {
        // What the table has dropped since is still here.
        if (!before && map.size >= 2 * MOST_DEFINITIONS[kind]) this.#forget(kind);
        const rhythm = before?.rhythm ?? (kind === 'event' ? new LookRhythm() : undefined);
        map.set(key, { dueAt: now + dueInMs, isTyped: isTyped || kind === 'event', rhythm });
        if (!before) this.bytes += bytesOf(key);
      } else if (before) {
        map.delete(key);
        this.bytes -= bytesOf(key);
      }
    }
  }

  #forget(kind: DefinitionKind): void {
    for (const key of this.#known[kind].keys()) this.bytes -= bytesOf(key);
    this.#known[kind].clear();
  }
}
