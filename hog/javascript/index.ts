// Compiles programs and expressions to JavaScript. The results are the same as those of the VM. Async calls are not
// supported.
import type { Expr, Program } from '../ast/index.ts';
import { compileBytecode } from '../bytecode/index.ts';
import { SourceError } from '../errors.ts';
import type { HogFailure } from '../runtime/errors.ts';
import { DEFAULT_LIMITS, type Limits, Meter } from '../runtime/meter.ts';
import { costOf, type HogValue } from '../runtime/values.ts';
import { activate } from './charge.ts';
import { emitEntry } from './emit-statement.ts';
import { Emitter } from './emitter.ts';
import { ownersOf } from './owners.ts';
import { failureOf, type Run, table, whole } from './runtime.ts';

export { type Transpiled, transpile, transpileAll } from './transpile.ts';

export interface JavaScriptOptions {
  functions?: Record<string, (...args: unknown[]) => unknown>;
  limits?: Partial<Limits>;
  /** Milliseconds. Limits of time count it. */
  clock?: () => number;
  /** What `now()` says, in milliseconds. By default the clock. */
  now?: () => number;
  random?: () => number;
  onPrint?: (line: string) => void;
  catchRuntimeErrors?: boolean;
}

/** A line and a column of the source, counted from 1. */
export interface Place {
  line: number;
  column: number;
}

export type JavaScriptOutcome =
  | { status: 'finished'; result: unknown; printed: string[]; steps: number }
  | { status: 'failed'; error: HogFailure; place: Place | null; printed: string[]; steps: number };

export type Executed =
  | {
      status: 'finished';
      result: HogValue;
      /** What the result takes, in bytes by estimate. Measured when it is asked for. Throws if it is too large. */
      size(): number;
      /** How often the program has set a part of a value. If it never did, what it was given is as before. */
      writes: number;
    }
  | { status: 'failed'; error: HogFailure; place: Place | null };

export interface Compiled {
  /** The JavaScript. It takes the runtime table and returns a function of globals and run. */
  code: string;
  /** The library and host functions that the code calls by name. */
  functions: string[];
  /** Lines and columns in the source, in pairs: the code says by their number where it is. Empty: it does not. */
  places: readonly number[];
  run(globals: object, options?: JavaScriptOptions): JavaScriptOutcome;
  /** Returns a function for repeated runs whose results other programs of this kind can take as they are. */
  executor(options: JavaScriptOptions): (globals: object) => Executed;
  /** Returns a function for repeated evaluation. It takes globals, returns the result and throws failures. */
  evaluator(options?: JavaScriptOptions): (globals: object) => unknown;
}

type Entry = (globals: object, run: Run) => unknown;

/**
 * Compiles a program or an expression to JavaScript. Refuses what the bytecode compiler refuses, with the same errors. With
 * `keepsPlace`, failures say where in the source they happen.
 */
export function compileJavaScript(
  node: Program | Expr,
  source?: string,
  { keepsPlace = false } = {},
): Compiled {
  compileBytecode(node, source);
  const emitter = new Emitter(ownersOf(node), keepsPlace && source !== undefined ? source : null);
  try {
    const code = emitEntry(emitter, node);
    return compiledFrom({ code, functions: emitter.calledNames, places: emitter.places });
  } catch (error) {
    if (error instanceof SourceError) throw source === undefined ? error : error.in(source);
    if (error instanceof RangeError || error instanceof SyntaxError) {
      throw new SourceError('too_deep', 'The source is too complex to compile to JavaScript');
    }
    throw error;
  }
}

/** Makes code of this compiler runnable that was compiled in another thread. */
export function compiledFrom({
  code,
  functions,
  places,
}: Pick<Compiled, 'code' | 'functions' | 'places'>): Compiled {
  // This is the only place that runs generated code. The code contains only generated names, keywords and literals.
  // The function can reach only its argument, the runtime table.
  const entry = new Function('R', code)(table) as Entry;
  return {
    ...{ code, functions, places },
    run: (globals, options) => run(entry, places, globals, options ?? {}),
    executor: (options) => executor(entry, places, options),
    evaluator: (options) => evaluator(entry, options ?? {}),
  };
}

function prepare(options: JavaScriptOptions, printed: string[] | null): Run {
  const meter = new Meter({ ...DEFAULT_LIMITS, ...options.limits }, options.clock ?? null);
  return {
    meter,
    functions: new Map(Object.entries(options.functions ?? {})),
    catchRuntimeErrors: options.catchRuntimeErrors ?? false,
    ...{ depth: 0, writes: 0, at: 0 },
    around: {
      meter,
      clock: options.now ?? options.clock ?? null,
      random: options.random ?? null,
      print: (line) => {
        printed?.push(line);
        options.onPrint?.(line);
      },
    },
  };
}

/** Where the code of a run was last. */
function placeOf(places: readonly number[], { at }: Run): Place | null {
  const [line, column] = places.slice(2 * at - 2, 2 * at);
  return at === 0 || line === undefined || column === undefined ? null : { line, column };
}

function run(
  entry: Entry,
  places: readonly number[],
  globals: object,
  options: JavaScriptOptions,
): JavaScriptOutcome {
  const printed: string[] = [];
  const prepared = prepare(options, printed);
  const outer = activate(prepared.meter);
  try {
    const result = whole(prepared, entry(globals, prepared));
    return { status: 'finished', result, printed, steps: prepared.meter.steps };
  } catch (error) {
    const place = placeOf(places, prepared);
    return { status: 'failed', error: failureOf(error), place, printed, steps: prepared.meter.steps };
  } finally {
    activate(outer);
  }
}

function executor(
  entry: Entry,
  places: readonly number[],
  options: JavaScriptOptions,
): (globals: object) => Executed {
  const prepared = prepare(options, null);
  const { meter } = prepared;
  return (globals) => {
    meter.restart();
    prepared.depth = 0;
    prepared.writes = 0;
    prepared.at = 0;
    const outer = activate(meter);
    try {
      const result = entry(globals, prepared);
      return { status: 'finished', result, writes: prepared.writes, size: () => costOf(result, meter) };
    } catch (error) {
      return { status: 'failed', error: failureOf(error), place: placeOf(places, prepared) };
    } finally {
      activate(outer);
    }
  };
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
