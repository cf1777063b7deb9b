import { type Bytecode, HEADER, OP_NAMES, OPERAND_COUNTS, Op } from '../bytecode/index.ts';
import { HogFailure } from '../runtime/errors.ts';

/** The instructions whose operand is a jump distance, counted from the element after the operand. */
const JUMPS = new Set<number>([Op.JUMP, Op.JUMP_IF_FALSE, Op.JUMP_IF_STACK_NOT_NULL]);
const NAMED = new Set<number>([Op.CALL_GLOBAL, Op.CALLABLE, Op.DECLARE_FN]);
const MAX_OPERAND = 1_000_000;
const MAX_LENGTH = 2_000_000;

const broken = (reason: string): HogFailure => new HogFailure('bytecode', `Invalid bytecode: ${reason}`);

/**
 * Returns the index of the first instruction. Code that begins with `_h` is the older version: it has no version number
 * and takes arguments in reverse.
 */
export function codeStart(code: Bytecode): number {
  if (code[0] === HEADER) return 2;
  if (code[0] === '_h') return 1;
  throw new HogFailure('bytecode', "Invalid HogQL bytecode, must start with '_H'");
}

const prepared = new WeakMap<Bytecode, Bytecode>();

/**
 * Validates bytecode, which can come from anyone, so that the VM need not check it while running. Every instruction
 * must be known, every operand must have its type, and every jump must lead to an instruction of the same function.
 * Returns the code to run: the same code, or a copy that corrects the one wrong jump of the reference compiler.
 */
export function prepare(code: Bytecode): Bytecode {
  const known = prepared.get(code);
  if (known) return known;
  if (!Array.isArray(code)) throw broken('not a list');
  if (code.length > MAX_LENGTH) throw broken(`longer than ${MAX_LENGTH} elements`);
  const start = codeStart(code);
  if (start === 2 && code.length > 1 && code[1] !== 1) throw broken(`unknown version ${String(code[1])}`);
  const short: number[] = [];
  checkRange(code, start, code.length, 0, short);
  const ready = short.length === 0 ? code : code.slice();
  for (const at of short) ready[at + 1] = (ready[at + 1] as number) + 1;
  prepared.set(code, ready);
  return ready;
}

function checkRange(code: Bytecode, start: number, end: number, depth: number, short: number[]): void {
  if (depth > 200) throw broken('functions are nested too deep');
  const starts = new Set<number>([end]);
  const jumps: [from: number, to: number][] = [];
  for (let at = start; at < end; ) {
    starts.add(at);
    const op = code[at];
    if (typeof op !== 'number' || !OP_NAMES.has(op))
      throw broken(`unknown instruction ${String(op)} at ${at}`);
    let next = at + 1 + (OPERAND_COUNTS.get(op) ?? 0);
    if (next > end) throw broken(`the code ends inside the instruction at ${at}`);
    checkOperands(code, op, at);
    if (op === Op.CLOSURE) {
      const count = code[at + 1] as number;
      next += 2 * count;
      if (next > end) throw broken(`the code ends inside the instruction at ${at}`);
      for (let i = at + 2; i < next; i += 2) {
        if (typeof code[i] !== 'boolean' && code[i] !== 0 && code[i] !== 1)
          throw broken(`the operand at ${i} is not a boolean`);
        checkCount(code, i + 1);
      }
    } else if (JUMPS.has(op)) jumps.push([at, at + 2 + (code[at + 1] as number)]);
    else if (op === Op.TRY) jumps.push([at, at + 1 + (code[at + 1] as number)]);
    else if (op === Op.CALLABLE || op === Op.DECLARE_FN) {
      const body = next;
      next += code[at + (op === Op.CALLABLE ? 4 : 3)] as number;
      if (next > end) throw broken(`the function at ${at} is longer than the code`);
      checkRange(code, body, next, depth + 1, short);
    }
    at = next;
  }
  for (const [from, to] of jumps) {
    if (starts.has(to)) continue;
    // The reference compiler makes one jump too short: that of a typed `catch` with a variable of its own, taken if the
    // type differs. It leads to the operand of a jump instead of the instruction after it.
    if (code[from] !== Op.JUMP_IF_FALSE || code[to - 1] !== Op.JUMP || !starts.has(to - 1)) {
      throw broken(`the jump at ${from} leads to ${to}, where no instruction starts`);
    }
    short.push(from);
  }
}

function checkOperands(code: Bytecode, op: number, at: number): void {
  const count = OPERAND_COUNTS.get(op) ?? 0;
  for (let i = 1; i <= count; i++) {
    const operand = code[at + i];
    if (op === Op.STRING) {
      if (typeof operand !== 'string') throw broken(`the operand of the instruction at ${at} is not a text`);
    } else if (op === Op.INTEGER || op === Op.FLOAT) {
      // Older compilers wrote booleans as integers.
      if (typeof operand !== 'number' && typeof operand !== 'boolean')
        throw broken(`the operand of the instruction at ${at} is not a number`);
    } else if (i === 1 && NAMED.has(op)) {
      if (typeof operand !== 'string') throw broken(`the operand of the instruction at ${at} is not a name`);
    } else if (JUMPS.has(op)) {
      if (!Number.isInteger(operand))
        throw broken(`the operand of the instruction at ${at} is not a jump distance`);
    } else checkCount(code, at + i);
  }
}

function checkCount(code: Bytecode, at: number): void {
  const count = code[at];
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 0 || count > MAX_OPERAND) {
    throw broken(`the operand at ${at} is not a count`);
  }
}
