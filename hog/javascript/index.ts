// Compiles programs and expressions without waiting calls to JavaScript that gives the machine's results.
import type { Expr, Program } from '../ast/index.ts';
import { compileBytecode } from '../bytecode/index.ts';
import { SourceError } from '../errors.ts';
import type { HogFailure } from '../runtime/errors.ts';
import { DEFAULT_LIMITS, type Limits, Meter } from '../runtime/meter.ts';
import { activate } from './charge.ts';
import { emitEntry } from './emit-statement.ts';
import { Emitter } from './emitter.ts';
import { failureOf, type Run, table, whole } from './runtime.ts';

export { type Transpiled, transpile, transpileAll } from './transpile.ts';

export interface JavaScriptOptions {
  functions?: Record<string, (...args: unknown[]) => unknown>;
  limits?: Partial<Limits>;
  clock?: () => number;
  random?: () => number;
  onPrint?: (line: string) => void;
  catchRuntimeErrors?: boolean;
}

export type JavaScriptOutcome =
  | { status: 'finished'; result: unknown; printed: string[]; steps: number }
  | { status: 'failed'; error: HogFailure; printed: string[]; steps: number };

export interface Compiled {
  /** The JavaScript: a function of the runtime table that gives a function of globals and run. */
  code: string;
  /** Functions of the library and the host it calls by name. */
  functions: string[];
  run(globals: object, options?: JavaScriptOptions): JavaScriptOutcome;
  /** A function for one purpose, made once: globals in, result out, failures thrown. */
  evaluator(options?: JavaScriptOptions): (globals: object) => unknown;
}

type Entry = (globals: object, run: Run) => unknown;

/** Compiles; what the machine's compiler refuses is refused in the same words. */
export function compileJavaScript(node: Program | Expr, source?: string): Compiled {
  compileBytecode(node, source);
  const emitter = new Emitter();
  let code: string;
  let entry: Entry;
  try {
    code = emitEntry(emitter, node);
    // The only way from text to running code. The text holds nothing but this module's own names, keywords,
    // and literals; the function sees its one argument, the table.
    entry = new Function('R', code)(table) as Entry;
  } catch (error) {
    if (error instanceof SourceError) throw source === undefined ? error : error.in(source);
    if (error instanceof RangeError || error instanceof SyntaxError) {
      throw new SourceError('too_deep', 'The source is too complex to become JavaScript');
    }
    throw error;
  }
  return {
    code,
    functions: emitter.calledNames,
    run: (globals, options) => run(entry, globals, options ?? {}),
    evaluator: (options) => evaluator(entry, options ?? {}),
  };
}

function prepare(options: JavaScriptOptions, printed: string[] | null): Run {
  const meter = new Meter({ ...DEFAULT_LIMITS, ...options.limits }, options.clock ?? null);
  return {
    meter,
    functions: new Map(Object.entries(options.functions ?? {})),
    catchRuntimeErrors: options.catchRuntimeErrors ?? false,
    depth: 0,
    around: {
      meter,
      clock: options.clock ?? null,
      random: options.random ?? null,
      print: (line) => {
        printed?.push(line);
        options.onPrint?.(line);
      },
    },
  };
}

function run(entry: Entry, globals: object, options: JavaScriptOptions): JavaScriptOutcome {
  const printed: string[] = [];
  const prepared = prepare(options, printed);
  const outer = activate(prepared.meter);
  try {
    const result = whole(prepared, entry(globals, prepared));
    return { status: 'finished', result, printed, steps: prepared.meter.steps };
  } catch (error) {
    return { status: 'failed', error: failureOf(error), printed, steps: prepared.meter.steps };
  } finally {
    activate(outer);
  }
}

function evaluator(entry: Entry, options: JavaScriptOptions): (globals: object) => unknown {
  const prepared = prepare(options, null);
  return (globals) => {
    prepared.meter.restart();
    prepared.depth = 0;
    const outer = activate(prepared.meter);
    try {
      const result = entry(globals, prepared);
      return typeof result === 'object' && result !== null ? whole(prepared, result) : result;
    } catch (error) {
      throw failureOf(error);
    } finally {
      activate(outer);
    }
  };
}
