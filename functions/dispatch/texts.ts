// Excludes stored events by the texts in their JSON, without reading it as JSON.
import type { Exclusion, TextsOfProperty } from './exclusion.ts';

const QUOTATION_MARK = 34;
/** Not looked for yet. */
const UNKNOWN = -2;

/** The JSON of the event that is looked at, as bytes in a text, and where names of properties stand in it. */
class Page {
  text = '';
  person = '';
  readonly #names: string[] = [];
  readonly #starts: string[] = [];
  #at: Int32Array = new Int32Array(0);

  /** Returns the number of a name. */
  numberOf(name: string): number {
    const found = this.#names.indexOf(name);
    if (found !== -1) return found;
    this.#names.push(name);
    this.#starts.push(`${name}":"`);
    this.#at = new Int32Array(this.#names.length).fill(UNKNOWN);
    return this.#names.length - 1;
  }

  open(text: string, person: string): void {
    this.text = text;
    this.person = person;
    this.#at.fill(UNKNOWN);
  }

  /** Where the value of a property begins that is a text: behind its quotation mark. -1: it is nowhere. */
  first(number: number): number {
    const known = this.#at[number] as number;
    if (known !== UNKNOWN) return known;
    const at = this.after(number, 0);
    this.#at[number] = at;
    return at;
  }

  after(number: number, from: number): number {
    // Quotation marks are everywhere, so a search that began with one would stop at each.
    const start = this.#starts[number] as string;
    for (let at = from; ; at += 1) {
      at = this.text.indexOf(start, at);
      if (at === -1) return -1;
      if (this.text.charCodeAt(at - 1) === QUOTATION_MARK) return at + start.length;
    }
  }
}

/** Whether a function is excluded from the event on the page. */
type IsExcluded = () => boolean;

/** Functions of a project, asked together about one event after the other. */
export class TextExclusions {
  readonly #page = new Page();

  /** Undefined: no text excludes events from the function. */
  of({ ofEvent, ofPerson }: Exclusion): IsExcluded | undefined {
    if (ofEvent.length + ofPerson.length === 0) return undefined;
    const page = this.#page;
    const lacks = ofEvent.map((one) => this.#lacks(one));
    return () => lacks.some((one) => one()) || ofPerson.some((text) => !page.person.includes(text));
  }

  /** The properties of the event and of its person, as JSON. False: they are not written as capture writes them. */
  open(properties: string, person: string): boolean {
    if (!COMPACT.test(properties)) return false;
    this.#page.open(properties, person);
    return true;
  }

  #lacks({ name, texts }: TextsOfProperty): IsExcluded {
    const page = this.#page;
    const number = page.numberOf(name);
    const ends = texts.map((text) => `${text}"`);
    return () => {
      // A name may come more than once, in what is nested.
      for (let at = page.first(number); at !== -1; at = page.after(number, at)) {
        if (ends.some((one) => page.text.startsWith(one, at))) return false;
      }
      return true;
    };
  }
}

/** Other writers of JSON put a space before or after the colon. The first one shows it. */
const COMPACT = /^\{"[^"\\]*":[^ ]/;
