// Which programs may run in the thread that makes the requests: those whose steps are cheap, whatever the event is.
import { type Bytecode, OPERAND_COUNTS, Op } from '../../hog/bytecode/index.ts';
import { codesIn } from '../input-values.ts';
import type { StoredInputs } from '../rules/definition.ts';

/** Functions that take time in proportion to what they are given, and for which the machine counts steps. */
const CHEAP = new Set([
  ...['fetch', 'sleep', 'print', 'postHogCapture', 'posthogCapture'],
  ...['toString', 'toInt', 'toFloat', 'concat', 'length', 'empty', 'notEmpty', 'ifNull', 'not', 'tuple'],
  ...['lower', 'upper', 'trim', 'trimLeft', 'trimRight', 'substring', 'startsWith', 'position'],
  ...['jsonStringify', 'jsonParse', 'keys', 'values', 'has', 'JSONHas', 'now', 'toUnixTimestamp'],
  ...[
    'encodeURLComponent',
    'base64Encode',
    'base64Decode',
    'sha256Hex',
    'md5Hex',
    'typeof',
    'cleanNullValues',
  ],
]);
const REGULAR_EXPRESSIONS = new Set<number>([Op.REGEX, Op.NOT_REGEX, Op.IREGEX, Op.NOT_IREGEX]);
/** Programs that declare functions of their own are left to threads. */
const OTHER_CODE = new Set<number>([Op.DECLARE_FN, Op.CALLABLE, Op.CLOSURE, Op.CALL_LOCAL]);

function isCheap(code: Bytecode): boolean {
  for (let at = code[0] === '_H' ? 2 : 1; at < code.length; ) {
    const op = code[at] as number;
    if (REGULAR_EXPRESSIONS.has(op) || OTHER_CODE.has(op)) return false;
    if (op === Op.CALL_GLOBAL && !CHEAP.has(code[at + 1] as string)) return false;
    at += 1 + (OPERAND_COUNTS.get(op) ?? 0);
  }
  return true;
}

const known = new WeakMap<StoredInputs, boolean>();

/** Answers whether a program with its inputs is light. */
export function isLight(bytecode: Bytecode, inputs: StoredInputs): boolean {
  let light = known.get(inputs);
  if (light === undefined) {
    const isFreeOfLiquid = Object.values(inputs).every(({ templating }) => templating !== 'liquid');
    const codes = Object.values(inputs).flatMap((one) => codesIn(one.bytecode));
    light = isFreeOfLiquid && [bytecode, ...codes].every(isCheap);
    known.set(inputs, light);
  }
  return light;
}
