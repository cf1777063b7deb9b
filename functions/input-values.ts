// The values of inputs, as a program sees them.

import type { Bytecode } from '../hog/bytecode/index.ts';
import { renderLiquid } from '../hog/liquid/index.ts';
import { run } from '../hog/vm/index.ts';
import { isObject } from '../values/json-object.ts';
import { errorOf, type Surroundings, TEMPLATE_LIMITS } from './evaluate.ts';
import type { StoredInputs } from './rules/definition.ts';
import type { Globals } from './rules/globals.ts';

class InputError extends Error {}

/** Sorts inputs by their order. The keys of an object that look like numbers lose theirs. */
export const inOrder = (inputs: StoredInputs) =>
  Object.entries(inputs).toSorted(([, a], [, b]) => (a.order ?? -1) - (b.order ?? -1));

/** Says in an error of which input it tells. */
export function nameInput(key: string, error: unknown): unknown {
  if (error instanceof Error) error.message = `Input "${key}": ${error.message}`;
  return error;
}

/** Evaluates one template. */
export type Evaluate = (code: Bytecode, globals: Globals, around: Surroundings) => unknown;

/** Throws an error with a message for people. */
export function valueOfInput(
  input: StoredInputs[string],
  globals: Globals,
  around: Surroundings,
  evaluate: Evaluate = inMachine,
): unknown {
  const { value, bytecode, templating } = input;
  if (templating === 'liquid') return liquid(value, globals, around);
  return bytecode === undefined ? value : evaluated(bytecode, (code) => evaluate(code, globals, around));
}

function liquid(value: unknown, globals: Globals, around: Surroundings): unknown {
  if (typeof value === 'string') return renderLiquid(value, globals, { now: new Date(around.now()) });
  if (Array.isArray(value)) return value.map((one) => liquid(one, globals, around));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, liquid(one, globals, around)]));
}

const isCode = (value: unknown): value is Bytecode =>
  Array.isArray(value) && (value[0] === '_H' || value[0] === '_h');

/** Lists the templates in what an input was compiled to. */
export function codesIn(value: unknown): Bytecode[] {
  if (isCode(value)) return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap(codesIn);
}

/** The key of an entry whose value is spread into the dictionary. The other entries win. */
const EXTEND = '$$_extend_object';

function evaluated(code: unknown, evaluate: (code: Bytecode) => unknown): unknown {
  if (isCode(code)) return evaluate(code);
  if (Array.isArray(code)) return code.map((one) => evaluated(one, evaluate));
  if (typeof code !== 'object' || code === null) return code;
  const values = Object.fromEntries(
    Object.entries(code).map(([key, one]) => [key, evaluated(one, evaluate)]),
  );
  if (!Object.hasOwn(values, EXTEND)) return values;
  const { [EXTEND]: base, ...own } = values;
  return isObject(base) ? { ...base, ...own } : own;
}

export function inMachine(code: Bytecode, globals: Globals, around: Surroundings): unknown {
  const outcome = run(code, { ...around, globals, limits: TEMPLATE_LIMITS });
  if (outcome.status === 'finished') return outcome.result;
  throw new InputError(errorOf(outcome));
}
