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
  /** What is made once, before any run: its code, and the name it has. */
  readonly #constants = new Map<string, string>();
  readonly #called = new Set<string>();
  readonly #globals = new Set<string>();

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

  /** The name of something that is the same in every run. */
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

  /** First names of the globals that are read. */
  get globalNames(): string[] {
    return [...this.#globals];
  }

  /** Names of the functions called that are not variables of the program. */
  get calledNames(): string[] {
    return [...this.#called];
  }
}
