import { globalReader } from './emit-expression.ts';

interface Scope {
  /** Hog name → JavaScript name. */
  names: Map<string, string>;
  outer: Scope | null;
}

/** Hands out names and keeps the scopes: no name of the source ever becomes a name in JavaScript. */
export class Emitter {
  #scope: Scope = { names: new Map(), outer: null };
  #count = 0;
  #temporaries: string[] = [];
  readonly #readers = new Map<string, { name: string; code: string }>();
  readonly #called = new Set<string>();

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

  /** A declaration whose name can be used only after its own value was emitted. */
  within<T>(emit: () => T): T {
    const outer = this.#scope;
    this.#scope = { names: new Map(), outer };
    try {
      return emit();
    } finally {
      this.#scope = outer;
    }
  }

  /** The body of a function: its temporaries are its own. */
  body(emit: () => string): string {
    const outer = this.#temporaries;
    this.#temporaries = [];
    const code = emit();
    const own = this.#temporaries;
    this.#temporaries = outer;
    return own.length > 0 ? `let ${own.join(', ')};\n${code}` : code;
  }

  /** The name of the function that reads this path of globals. */
  globalReader(chain: string[]): string {
    const key = JSON.stringify(chain);
    let known = this.#readers.get(key);
    if (!known) {
      known = { name: this.fresh('g'), code: globalReader(chain) };
      this.#readers.set(key, known);
    }
    return known.name;
  }

  called(name: string): string {
    this.#called.add(name);
    return name;
  }

  get readers(): string {
    return [...this.#readers.values()].map(({ name, code }) => `const ${name} = ${code};\n`).join('');
  }

  /** Names of the functions called that are not variables of the program. */
  get calledNames(): string[] {
    return [...this.#called];
  }
}
