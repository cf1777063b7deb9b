/** @import { LibraryEntry, Run, Value } from './types.ts' */
import { complaint, explained } from './arguments.js';
import { takeStep } from './operators.js';
import { fail, newClosure, toHog, toHost } from './values.js';

/**
 * Builds the functions with which compiled code calls functions by name: those of the page and those of the library.
 * @type {(library: Record<string, LibraryEntry>) => Record<string, Value>}
 */
export function callsOf(library) {
  /** @type {(run: Run, name: string, args: Value[]) => Value} */
  const call = (run, name, args) => {
    const { functions } = run.options;
    const host = functions && Object.hasOwn(functions, name) ? functions[name] : null;
    if (host) return toHog(host(...args.map((one) => toHost(one))));
    if (!Object.hasOwn(library, name)) fail(`Unsupported function call: ${name}`);
    const [fewest, most, body, wanted, isStrict, isNullable, isExact] = /** @type {LibraryEntry} */ (
      library[name]
    );
    if (isExact && args.length !== fewest) fail(`Function ${name} requires exactly ${fewest} arguments`);
    if (args.length < fewest) fail(`Function ${name} requires at least ${fewest} arguments`);
    if (most !== null && args.length > most) fail(`Function ${name} requires at most ${most} arguments`);
    takeStep(run);
    const wrong = isStrict && !(isNullable && args[0] === null) ? complaint(name, args, wanted) : null;
    if (wrong !== null) fail(wrong);
    try {
      const result = body(args, run, name);
      return result === undefined ? null : result;
    } catch (error) {
      if (Object(error).hogError) throw error;
      return fail(explained(name, args, wanted, error));
    }
  };
  /** @type {(name: string) => (run: Run, args: Value[]) => Value} */
  const named = (name) => (run, args) => call(run, name, args);
  /** @type {(run: Run, value: Value) => Value} */
  const text = (run, value) =>
    typeof value === 'string' && !run.options.functions ? value : call(run, 'toString', [value]);
  /** @type {(path: string[]) => Value} */
  const missing = (path) => {
    const name = /** @type {string} */ (path[0]);
    if (path.length > 1 || !Object.hasOwn(library, name)) {
      fail(`Global variable not found: ${path.join('.')}`);
    }
    return newClosure('stl', name, library[name]?.[1] || 0, named(name));
  };
  /**
   * Changes the list of a variable in place if the variable owns it, and otherwise copies it first.
   * @type {(run: Run, name: string, args: Value[]) => Value}
   */
  const change = (run, name, args) => {
    const { functions } = run.options;
    if ((functions && Object.hasOwn(functions, name)) || !Object(args[0]).__isHogOwned) {
      const result = call(run, name, args);
      if (Array.isArray(result)) Object(result).__isHogOwned = !functions || !Object.hasOwn(functions, name);
      return result;
    }
    takeStep(run);
    const [list, value] = args;
    if (name === 'arrayPushBack') list.push(value);
    else if (name === 'arrayPushFront') list.unshift(value);
    else if (name === 'arrayPopBack') list.pop();
    else list.shift();
    return list;
  };
  return { name: call, named, text, missing, change };
}
