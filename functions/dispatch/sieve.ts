// Finds out, while events are captured, which of them no function can want. Those are counted, and never looked at again.
import { nextTurn } from '../../db/loop-turns.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { isStorableText } from '../../values/texts.ts';
import type { SievedRow } from '../rows/reacting.ts';
import { wantedNames } from '../rules/wanted-names.ts';
import { both, type Exclusion, either, exclusionOf, type Glance } from './exclusion.ts';

/** What is known of an event before it is stored. It was found out with a version of the project's functions. */
export interface Look {
  projectId: number;
  version: number;
  /** The name of the event. Null: no function names it. */
  name: string | null;
  /** Whether there are functions that would have to look at it, and so count it. */
  isCounted: boolean;
  /** Some function runs only for a person whose JSON contains all texts of one of these. Empty: none can run. */
  persons: readonly (readonly string[])[];
}

/** If more functions may want an event, looking at it here would hold up the others. */
const MOST_CANDIDATES = 100;
/** So many functions are read in one turn of the event loop. */
const AT_ONCE = 100;

interface Candidates {
  /** Null: an event with this name cannot be excluded. */
  exclusions: readonly Exclusion[] | null;
  nobody: Look;
}

interface Sieved {
  own: Bytecode | null;
  mappings: readonly (Bytecode | null)[] | null;
}

/** The functions of a project, as far as they can exclude events. */
export class Sieve {
  readonly version: number;
  readonly #projectId: number;
  readonly #ofAny: Sieved[] = [];
  readonly #byName = new Map<string, Sieved[]>();
  readonly #candidates = new Map<string, Candidates>();
  readonly #unnamed: Candidates;

  private constructor(
    projectId: number,
    version: number,
    functions: readonly (Sieved & { names: string[] | null })[],
  ) {
    this.#projectId = projectId;
    this.version = version;
    for (const { names, ...one } of functions) {
      if (names === null) this.#ofAny.push(one);
      for (const name of new Set(names)) {
        const list = this.#byName.get(name);
        if (list) list.push(one);
        else this.#byName.set(name, [one]);
      }
    }
    this.#unnamed = this.#prepared(null, this.#ofAny);
  }

  /** Reads rows. Others have their turn meanwhile, because there may be thousands. */
  static async of(projectId: number, version: number, rows: readonly SievedRow[]): Promise<Sieve> {
    const functions: (Sieved & { names: string[] | null })[] = [];
    for (const [index, row] of rows.entries()) {
      if (index % AT_ONCE === AT_ONCE - 1) await nextTurn();
      functions.push(sievedOf(row));
    }
    return new Sieve(projectId, version, functions);
  }

  /** Looks at an event. Undefined: a function may want it. */
  look(event: Glance): Look | undefined {
    if (!isStorableText(event.event) || !isStorableText(event.distinct_id)) return undefined;
    const { exclusions, nobody } = this.#candidatesOf(event.event);
    if (exclusions === null) return undefined;
    let persons: (readonly string[])[] | undefined;
    for (const { excludes, ofPerson } of exclusions) {
      if (excludes(event)) continue;
      if (ofPerson.length === 0) return undefined;
      persons ??= [];
      persons.push(ofPerson);
    }
    return persons ? { ...nobody, persons } : nobody;
  }

  #candidatesOf(name: string): Candidates {
    const named = this.#byName.get(name);
    if (!named) return this.#unnamed;
    let known = this.#candidates.get(name);
    if (!known) {
      known = this.#prepared(name, [...named, ...this.#ofAny]);
      this.#candidates.set(name, known);
    }
    return known;
  }

  #prepared(name: string | null, functions: readonly Sieved[]): Candidates {
    const { version } = this;
    const isCounted = functions.length > 0;
    const nobody: Look = { projectId: this.#projectId, version, name, isCounted, persons: [] };
    if (functions.length > MOST_CANDIDATES) return { exclusions: null, nobody };
    return { exclusions: functions.map(exclusionOfFunction), nobody };
  }
}

function sievedOf({ filters, mappings }: SievedRow): Sieved & { names: string[] | null } {
  const own = JSON.parse(filters) as Record<string, unknown>;
  const mapped =
    mappings === null
      ? null
      : (JSON.parse(mappings) as { filters?: Record<string, unknown>; disabled?: boolean }[]);
  const code = (given: Record<string, unknown> | undefined) => (given?.bytecode ?? null) as Bytecode | null;
  return {
    own: code(own),
    mappings: mapped?.filter(({ disabled }) => disabled !== true).map((one) => code(one.filters)) ?? null,
    names: mapped ? wantedNames(mapped.map((one) => one.filters ?? {})) : wantedNames([own]),
  };
}

function exclusionOfFunction({ own, mappings }: Sieved): Exclusion {
  const first = exclusionOf(own);
  return mappings ? both(first, either(mappings.map(exclusionOf))) : first;
}

/** Answers whether no function can want an event of this person. */
export const isUnwanted = ({ persons }: Look, person: { mode: string; properties: string }): boolean =>
  !persons.some(
    (texts) => person.mode !== PERSONLESS && texts.every((text) => person.properties.includes(text)),
  );
const PERSONLESS = 'propertyless';
