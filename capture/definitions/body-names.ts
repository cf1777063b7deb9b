import type { DefinitionKind } from '../../db/definitions.ts';
import type { CapturedEvent } from '../captured-event.ts';
import { type NameSink, nameKey, type SeenName, showProperties, storedName } from './names.ts';
import { propertyTypeOf } from './property-type.ts';
import { LookRhythm } from './rhythm.ts';

/** So many names of one body are told. */
const MOST_NAMES = 2_000;

/** Gathers the names in a large body, on the thread that parses it. */
export function namesOf(events: readonly CapturedEvent[]): SeenName[] {
  const names = new BodyNames();
  for (const one of events) names.look(one);
  return names.all();
}

class BodyNames implements NameSink {
  readonly #names = new Map<string, SeenName>();
  readonly #rhythms = new Map<string, LookRhythm>();
  #now = 0;

  look(event: CapturedEvent): void {
    this.#now = event.received_at;
    const isNew = this.see('event', '', event.event, undefined);
    let rhythm = this.#rhythms.get(event.event);
    if (!rhythm) {
      // Too long, or one too many.
      if (!isNew) return;
      rhythm = new LookRhythm();
      this.#rhythms.set(event.event, rhythm);
    }
    if (rhythm.isDue(this.#now)) rhythm.found(showProperties(event, this), this.#now);
  }

  see(kind: DefinitionKind, groupType: string, name: string, value: unknown): boolean {
    const key = nameKey({ kind, groupType, name });
    const known = this.#names.get(key);
    if (known) {
      if (kind !== 'event') known.type ??= propertyTypeOf(name, value, this.#now);
      return false;
    }
    const stored = storedName(name);
    if (stored === undefined || this.#names.size >= MOST_NAMES) return false;
    const type = kind === 'event' ? null : propertyTypeOf(name, value, this.#now);
    this.#names.set(key, { kind, groupType, name: stored, type });
    return true;
  }

  all(): SeenName[] {
    return [...this.#names.values()];
  }
}
