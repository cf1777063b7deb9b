import type { Span } from '../ast/index.ts';
import { placesOf } from '../errors.ts';
import { globalReader } from './emit-expression.ts';
import type { Owners } from './owners.ts';

interface Scope {
  /** Maps Hog names to JavaScript names. */
  names: Map<string, string>;
  outer: Scope | null;
}

/** Generates JavaScript names and tracks scopes. A name of the source never becomes a JavaScript name. */
export class Emitter {
  #scope: Scope = { names: new Map(), outer: null };
  #count = 0;
  #temporaries: string[] = [];
  /** Constants that are created once, before any run: their code → their name. */
  readonly #constants = new Map<string, string>();
  readonly #called = new Set<string>();
  readonly #globals = new Set<string>();
  readonly owners: Owners;
  /** Null: the code does not keep its place. */
  readonly #placeAt: ReturnType<typeof placesOf> | null;
  readonly #places: number[] = [];
  readonly #known = new Map<number, number>();

  constructor(owners: Owners, source: string | null = null) {
    this.owners = owners;
    this.#placeAt = source === null ? null : placesOf(source);
  }

  /** Emits an assignment that says where the code is. As the last argument of a call, it runs just before the call. */
  at(span: Span | undefined): string {
    if (!this.#placeAt || !span) return '';
    let known = this.#known.get(span.start);
    if (known === undefined) {
      const { line, column } = this.#placeAt(span.start);
      known = this.#places.push(line, column) / 2;
      this.#known.set(span.start, known);
    }
    return `E.at = ${known}`;
  }

  /** The same as a further argument. */
  last(span: Span | undefined): string {
    const code = this.at(span);
    return code && `, ${code}`;
  }

  /** Lines and columns, in pairs. What `E.at` says counts them from 1. */
  get places(): readonly number[] {
    return this.#places;
  }

  fresh(prefix: string): string {
    return `${prefix}${this.#count++}`;
  }

  temporary(): string {
    const name = this.fresh('t');
    this.#temporaries.push(name);
    return name;
  }

  lookup(name: string): string | null {
    for (let scope: Scope | null = this.#scope; scope; scope = scope.outer) {
      const found = scope.names.get(name);
      if (found) return found;
    }
    return null;
  }

  declare(name: string): string {
    const made = this.fresh('v');
    this.#scope.names.set(name, made);
    return made;
  }

  /** Runs `emit` in a new scope. */
  within<T>(emit: () => T): T {
    const outer = this.#scope;
    this.#scope = { names: new Map(), outer };
    try {
      return emit();
    } finally {
      this.#scope = outer;
    }
  }

  /** Emits the body of a function and declares its temporaries at the top. */
  body(emit: () => string): string {
    const outer = this.#temporaries;
    this.#temporaries = [];
    const code = emit();
    const own = this.#temporaries;
    this.#temporaries = outer;
    return own.length > 0 ? `let ${own.join(', ')};\n${code}` : code;
  }

  /** Returns the name of a constant with this code. The same code gets the same name. */
  constant(code: string): string {
    let name = this.#constants.get(code);
    if (!name) {
      name = this.fresh('k');
      this.#constants.set(code, name);
    }
    return name;
  }

  globalReader(chain: string[]): string {
    this.#globals.add(chain[0] as string);
    return this.constant(globalReader(chain));
  }

  called(name: string): string {
    this.#called.add(name);
    return name;
  }

  get constants(): string {
    return [...this.#constants].map(([code, name]) => `const ${name} = ${code};\n`).join('');
  }

  /** The first part of each path of globals that the code reads. */
  get globalNames(): string[] {
    return [...this.#globals];
  }

  /** The functions that the code calls and that are not variables of the program. */
  get calledNames(): string[] {
    return [...this.#called];
  }
}
