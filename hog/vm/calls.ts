import { asFailure, HogFailure, runtimeFailure } from '../runtime/errors.ts';
import { changeList, listChanges, own, SORTING } from '../runtime/lists.ts';
import { getGlobal } from '../runtime/operators.ts';
import { checkArgumentCount, checkArity, type LibraryFunction, library } from '../runtime/stl.ts';
import {
  closureMessage,
  costOf,
  type HogClosure,
  type HogValue,
  isHogCallable,
  isHogClosure,
  newHogCallable,
  newHogClosure,
  toHog,
  toHost,
} from '../runtime/values.ts';
import { Use } from './borrow.ts';
import { hogLibrary, libraryChunk } from './hog-library.ts';
import type { Machine } from './machine.ts';

/** The length of a call in the bytecode: the instruction, the name and the number of arguments. */
const CALL_LENGTH = 3;

interface Waiting {
  name: string;
  args: unknown[];
}

/** Creates a function value for a library function or an async function. */
function functionValue(kind: 'stl' | 'async', name: string, argCount: number): HogClosure {
  return newHogClosure(newHogCallable(kind, { name, argCount, upvalueCount: 0, ip: -1, chunk: kind }));
}

/** Returns the library function or async function with a name as a value, or null if there is none. */
export function namedFunction(name: string, asyncFunctions: ReadonlySet<string>): HogClosure | null {
  if (asyncFunctions.has(name)) return functionValue('async', name, 0);
  const native = library.get(name);
  if (native) return functionValue('stl', name, native.maxArgs ?? 0);
  const written = hogLibrary.get(libraryChunk(name));
  return written ? functionValue('stl', name, written.params.length) : null;
}

export function readGlobal(machine: Machine, count: number): void {
  const path = machine.stack.take(count).reverse();
  const { globals, asyncFunctions } = machine.env;
  const first = String(path[0]);
  if (Object.hasOwn(globals, first)) {
    machine.stack.push(getGlobal(globals, path));
    return;
  }
  const value = path.length === 1 ? namedFunction(first, asyncFunctions) : null;
  if (!value) throw runtimeFailure(`Global variable not found: ${path.map(String).join('.')}`);
  machine.stack.push(value);
}

export function makeClosure(machine: Machine): void {
  const { stack, frame, code } = machine;
  const callable = stack.pop();
  if (!isHogCallable(callable)) throw new HogFailure('bytecode', 'Invalid bytecode: not a function');
  const count = code[frame.ip++] as number;
  if (count !== callable.upvalueCount) {
    throw new HogFailure(
      'bytecode',
      `Invalid upvalue count. Expected ${callable.upvalueCount}, got ${count}`,
    );
  }
  const upvalues: number[] = [];
  for (let i = 0; i < count; i++) {
    const isLocal = code[frame.ip++];
    const index = code[frame.ip++] as number;
    const id = isLocal ? stack.capture(index) : frame.closure.upvalues[index];
    if (id === undefined) throw new HogFailure('bytecode', `Invalid upvalue index: ${index}`);
    upvalues.push(id);
  }
  stack.push(newHogClosure(callable, upvalues));
}

/** Takes the arguments of a call off the stack, in source order. */
function take(machine: Machine, count: number): HogValue[] {
  checkArgumentCount(count, machine.meter);
  const args = machine.stack.take(count);
  return machine.reversed ? args.reverse() : args;
}

export function callGlobal(machine: Machine, name: string, count: number): Waiting | null {
  const { functions, asyncFunctions } = machine.env;
  const declared = machine.declared.get(name);
  if (declared && name !== 'toString') {
    const [ip, args] = declared;
    enter(machine, name, ip, machine.frame.chunk, count, args);
    return null;
  }
  const host = functions.get(name);
  if (host) {
    machine.stack.push(callHost(machine, host, take(machine, count)));
    return null;
  }
  if (asyncFunctions.has(name)) return wait(machine, name, take(machine, count));
  if (library.has(name) && !sortsByKey(machine, name, count)) {
    machine.stack.push(
      machine.uses && listChanges.has(name)
        ? callChange(machine, name, count)
        : callNative(machine, name, count),
    );
    return null;
  }
  if (hogLibrary.has(libraryChunk(name))) {
    callWritten(machine, name, count);
    return null;
  }
  throw runtimeFailure(`Unsupported function call: ${name}`);
}

function callHost(machine: Machine, fn: (...args: unknown[]) => unknown, args: HogValue[]): HogValue {
  try {
    return toHog(fn(...args.map((one) => whole(machine, one))));
  } catch (error) {
    throw asFailure(error);
  }
}

function callNative(machine: Machine, name: string, count: number): HogValue {
  const fn = library.get(name);
  if (!fn) throw runtimeFailure(`Unsupported function call: ${name}`);
  checkArgumentCount(count, machine.meter);
  checkArity(fn, count);
  return fn.call(take(machine, count), machine.env.around);
}

/** Returns whether this is `arraySort(key, list)`, which is written in Hog. With a list alone it is not. */
function sortsByKey({ stack, reversed }: Machine, name: string, count: number): boolean {
  if (count !== 2 || !SORTING.has(name)) return false;
  return isHogClosure(stack.values[stack.height - (reversed ? 1 : 2)]);
}

/** Calls a list function. If the bytecode says so, it changes the list in place. */
function callChange(machine: Machine, name: string, count: number): HogValue {
  const use = machine.uses?.[machine.frame.ip - CALL_LENGTH];
  if (use !== Use.IN_PLACE && use !== Use.FRESH) return callNative(machine, name, count);
  checkArity(library.get(name) as LibraryFunction, count);
  const args = take(machine, count);
  return own(changeList(name, args, use === Use.IN_PLACE, machine.meter));
}

/** Calls a library function that is written in Hog. */
function callWritten(machine: Machine, name: string, count: number): void {
  const chunk = libraryChunk(name);
  const { length } = hogLibrary.get(chunk)?.params ?? [];
  if (length !== count) throw runtimeFailure(`Function ${name} requires exactly ${length} arguments`);
  enter(machine, name, 0, chunk, count, length);
}

function enter(machine: Machine, name: string, ip: number, chunk: string, count: number, args: number): void {
  for (let i = count; i < args; i++) machine.stack.push(null);
  const callable = newHogCallable('local', { name, argCount: args, upvalueCount: 0, ip, chunk });
  const base = machine.stack.height - args;
  if (base < machine.frame.base) throw new HogFailure('bytecode', 'Not enough arguments on the stack');
  machine.enter({ closure: newHogClosure(callable), chunk, ip, base });
}

export function callClosure(machine: Machine, closure: HogValue, count: number): Waiting | null {
  if (!isHogClosure(closure) || !isHogCallable(closure.callable))
    throw runtimeFailure(closureMessage(closure));
  const { callable } = closure;
  const name = callable.name ?? '';
  if (callable.__hogCallable__ === 'stl') {
    if (!library.has(name) || sortsByKey(machine, name, count)) callWritten(machine, name, count);
    else machine.stack.push(callNative(machine, name, count));
    return null;
  }
  if (callable.__hogCallable__ === 'async') return wait(machine, name, take(machine, count));
  checkArgumentCount(count, machine.meter);
  if (callable.argCount < count) {
    throw runtimeFailure(`Too many arguments. Passed ${count}, expected ${callable.argCount}`);
  }
  for (let i = count; i < callable.argCount; i++) machine.stack.push(null);
  const base = machine.stack.height - callable.argCount;
  if (base < machine.frame.base) throw new HogFailure('bytecode', 'Not enough arguments on the stack');
  machine.enter({ closure, chunk: callable.chunk, ip: callable.ip, base });
  return null;
}

function wait(machine: Machine, name: string, args: HogValue[]): Waiting {
  const { maxAsyncSteps } = machine.meter.limits;
  if (machine.asyncSteps >= maxAsyncSteps) {
    throw new HogFailure('async', `Exceeded maximum number of async steps: ${maxAsyncSteps}`);
  }
  machine.asyncSteps++;
  return { name, args: args.map((one) => whole(machine, one)) };
}

/** Converts a value for the host. Refuses values that are too large to convert. */
function whole(machine: Machine, value: HogValue): unknown {
  if (typeof value === 'object' && value !== null) costOf(value, machine.meter);
  return toHost(value);
}
