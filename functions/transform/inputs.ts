import { decompileExpression } from '../../hog/bytecode/decompile.ts';
import type { Bytecode } from '../../hog/bytecode/index.ts';
import { compileJavaScript, type JavaScriptOptions } from '../../hog/javascript/index.ts';
import { TEMPLATE_LIMITS } from '../evaluate.ts';
import { isJavaScript, type Moment } from '../filter.ts';
import { codesIn, type Evaluate, inMachine, inOrder, nameInput, valueOfInput } from '../input-values.ts';
import type { StoredInputs } from '../rules/definition.ts';
import type { Globals } from '../rules/globals.ts';

type Inputs = Record<string, unknown>;
type Evaluator = (globals: Globals) => unknown;

/** Answers whether code always has the same value. */
const isConstant = (code: Bytecode): boolean => decompileExpression(code)?.kind === 'constant';

/**
 * Returns a function that finds the values of inputs for an event. It throws what is wrong with one. Values that no event
 * changes are found once.
 */
export function inputsOf(
  stored: StoredInputs,
  given: Inputs,
  moment: Moment,
  { clock, limits }: Pick<JavaScriptOptions, 'clock' | 'limits'>,
): (globals: Globals) => Inputs {
  const evaluators = new Map<Bytecode, Evaluator>();
  const sorted = inOrder(stored);
  for (const [, { bytecode }] of sorted) {
    for (const code of codesIn(bytecode)) {
      const evaluator = evaluatorOf(code, moment, { clock, limits });
      if (evaluator) evaluators.set(code, evaluator);
    }
  }
  const evaluate: Evaluate = (code, globals, around) => {
    const evaluator = evaluators.get(code);
    return evaluator ? evaluator(globals) : inMachine(code, globals, around);
  };
  const valuesFor = (globals: Globals): Inputs => {
    const inputs: Inputs = {};
    const seen = { ...globals, inputs };
    let current = '';
    try {
      for (const [key, input] of sorted) {
        current = key;
        inputs[key] = Object.hasOwn(given, key)
          ? given[key]
          : valueOfInput(input, seen, moment.surroundings, evaluate);
      }
    } catch (error) {
      throw nameInput(current, error);
    }
    return inputs;
  };
  const isFixed = sorted.every(
    ([key, { bytecode, templating }]) =>
      Object.hasOwn(given, key) || (templating !== 'liquid' && codesIn(bytecode).every(isConstant)),
  );
  if (!isFixed) return valuesFor;
  let fixed: Inputs | undefined;
  return (globals) => {
    fixed ??= valuesFor(globals);
    return fixed;
  };
}

/** Answers whether inputs can be found within limits of their own: without Liquid, and without the machine. */
export const areLimited = (stored: StoredInputs): boolean =>
  Object.values(stored).every(
    ({ bytecode, templating }) => templating !== 'liquid' && codesIn(bytecode).every(isJavaScript),
  );

function evaluatorOf(
  code: Bytecode,
  moment: Moment,
  { clock, limits }: Pick<JavaScriptOptions, 'clock' | 'limits'>,
): Evaluator | undefined {
  const expression = decompileExpression(code);
  if (!expression) return undefined;
  try {
    return compileJavaScript(expression).evaluator({
      ...{ now: () => moment.now, random: () => moment.random() },
      ...(clock ? { clock } : {}),
      limits: { ...TEMPLATE_LIMITS, ...limits },
    });
  } catch {
    return undefined;
  }
}
