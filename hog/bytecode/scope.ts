import type { Span } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { type Bytecode, Op } from './operations.ts';

interface Local {
  name: string;
  depth: number;
  captured: boolean;
}

export interface Upvalue {
  index: number;
  isLocal: boolean;
}

/**
 * The variables of one function, or of the program. Each local variable is a slot of the VM's stack, counted from the
 * start of the function's stack frame.
 */
export class FunctionScope {
  readonly enclosing: FunctionScope | null;
  readonly locals: Local[] = [];
  readonly upvalues: Upvalue[] = [];
  /** How many values the stack frame holds at this point of the code: local variables and intermediate results. */
  height = 0;
  /** Locals that are declared but not yet assigned. Reading one would read an unrelated value from its slot. */
  readonly pending = new Set<number>();
  #depth = 0;

  constructor(enclosing: FunctionScope | null, params: string[], span?: Span) {
    this.enclosing = enclosing;
    for (const name of params) this.declare(name, span);
    this.height = params.length;
  }

  start(): void {
    this.#depth++;
  }

  /** Ends the innermost scope and returns the code that removes its variables from the stack. */
  end(): Bytecode {
    this.#depth--;
    const code: Bytecode = [];
    while ((this.locals.at(-1)?.depth ?? -1) > this.#depth) {
      code.push(this.locals.pop()?.captured ? Op.CLOSE_UPVALUE : Op.POP);
    }
    this.height = this.locals.length;
    return code;
  }

  declare(name: string, span?: Span): number {
    for (let i = this.locals.length - 1; i >= 0; i--) {
      const local = this.locals[i] as Local;
      if (local.depth < this.#depth) break;
      if (local.name === name) {
        throw new SourceError(
          'compile',
          `Variable \`${name}\` already declared in this scope`,
          undefined,
          span,
        );
      }
    }
    this.locals.push({ name, depth: this.#depth, captured: false });
    return this.locals.length - 1;
  }

  local(name: string): number {
    return this.locals.findLastIndex((local) => local.name === name);
  }

  /** Captures a variable of an enclosing function and returns its index, or -1 if there is no such variable. */
  upvalue(name: string): number {
    if (!this.enclosing) return -1;
    const index = this.enclosing.local(name);
    if (index !== -1) {
      (this.enclosing.locals[index] as Local).captured = true;
      return this.#capture(index, true);
    }
    const outer = this.enclosing.upvalue(name);
    return outer === -1 ? -1 : this.#capture(outer, false);
  }

  #capture(index: number, isLocal: boolean): number {
    const known = this.upvalues.findIndex((one) => one.index === index && one.isLocal === isLocal);
    return known === -1 ? this.upvalues.push({ index, isLocal }) - 1 : known;
  }
}
