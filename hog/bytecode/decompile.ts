import type { ArithmeticOperator } from '../ast/index.ts';
import { build, type CompareOperator, type Expr } from '../ast/index.ts';
import { compileBytecode } from './index.ts';
import { type Bytecode, HEADER, OPERAND_COUNTS, Op, VERSION } from './operations.ts';

const COMPARISONS = new Map<number, CompareOperator>([
  [Op.EQ, '=='],
  [Op.NOT_EQ, '!='],
  [Op.GT, '>'],
  [Op.GT_EQ, '>='],
  [Op.LT, '<'],
  [Op.LT_EQ, '<='],
  [Op.LIKE, 'like'],
  [Op.ILIKE, 'ilike'],
  [Op.NOT_LIKE, 'not like'],
  [Op.NOT_ILIKE, 'not ilike'],
  [Op.IN, 'in'],
  [Op.NOT_IN, 'not in'],
  [Op.REGEX, '=~'],
  [Op.NOT_REGEX, '!~'],
  [Op.IREGEX, '=~*'],
  [Op.NOT_IREGEX, '!~*'],
]);

const ARITHMETIC = new Map<number, ArithmeticOperator>([
  [Op.PLUS, '+'],
  [Op.MINUS, '-'],
  [Op.MULTIPLY, '*'],
  [Op.DIVIDE, '/'],
  [Op.MOD, '%'],
]);

/**
 * Finds the expression that compiles to this bytecode. Returns undefined for code that is no expression, or one with
 * branches or functions other than `ifNull`. What is returned compiles to exactly the same code, so it means the same.
 */
export function decompileExpression(bytecode: Bytecode): Expr | undefined {
  if (bytecode[0] !== HEADER || bytecode[1] !== VERSION) return undefined;
  try {
    const expression = new Reader(bytecode).read(2, bytecode.length);
    const again = compileBytecode(expression);
    return again.length === bytecode.length && again.every((one, index) => one === bytecode[index])
      ? expression
      : undefined;
  } catch (error) {
    if (error instanceof NoExpression || error instanceof RangeError) return undefined;
    throw error;
  }
}

class NoExpression extends Error {}

class Reader {
  readonly #code: Bytecode;

  constructor(code: Bytecode) {
    this.#code = code;
  }

  /** Reads a range of the code, which leaves one value. */
  read(from: number, to: number): Expr {
    const stack: Expr[] = [];
    let at = from;
    while (at < to) at = this.#one(stack, at, to);
    if (stack.length !== 1) throw new NoExpression();
    return stack[0] as Expr;
  }

  #one(stack: Expr[], at: number, to: number): number {
    const code = this.#code;
    const op = code[at] as number;
    const operand = code[at + 1];
    const next = at + 1 + (OPERAND_COUNTS.get(op) ?? 0);
    const pop = () => {
      const expression = stack.pop();
      if (!expression) throw new NoExpression();
      return expression;
    };
    const popMany = (count: number) => {
      if (stack.length < count) throw new NoExpression();
      return stack.splice(stack.length - count);
    };
    const comparison = COMPARISONS.get(op);
    if (comparison) {
      const left = pop();
      stack.push(build.compare(comparison, left, pop()));
      return next;
    }
    const arithmetic = ARITHMETIC.get(op);
    if (arithmetic) {
      const left = pop();
      stack.push(build.arithmetic(arithmetic, left, pop()));
      return next;
    }
    switch (op) {
      case Op.TRUE:
      case Op.FALSE:
        stack.push(build.constant(op === Op.TRUE));
        return next;
      case Op.NULL:
        stack.push(build.constant(null));
        return next;
      case Op.STRING:
        stack.push(build.constant(operand as string));
        return next;
      case Op.INTEGER:
        stack.push(build.integer(operand as number));
        return next;
      case Op.FLOAT:
        stack.push(build.float(operand as number));
        return next;
      case Op.GET_GLOBAL: {
        const chain = popMany(operand as number).map((one) => {
          if (one.kind !== 'constant' || typeof one.value !== 'string') throw new NoExpression();
          return one.value;
        });
        stack.push(build.field(...chain.reverse()));
        return next;
      }
      case Op.GET_PROPERTY:
      case Op.GET_PROPERTY_NULLISH: {
        const [object, property] = popMany(2) as [Expr, Expr];
        stack.push({ kind: 'arrayAccess', object, property, nullish: op === Op.GET_PROPERTY_NULLISH });
        return next;
      }
      case Op.NOT:
        stack.push({ kind: 'not', expr: pop() });
        return next;
      case Op.AND:
        stack.push({ kind: 'and', exprs: popMany(operand as number) });
        return next;
      case Op.OR:
        stack.push({ kind: 'or', exprs: popMany(operand as number) });
        return next;
      case Op.ARRAY:
        stack.push({ kind: 'array', exprs: popMany(operand as number) });
        return next;
      case Op.TUPLE:
        stack.push({ kind: 'tuple', exprs: popMany(operand as number) });
        return next;
      case Op.CALL_GLOBAL: {
        const args = popMany(code[at + 2] as number);
        stack.push(build.call(operand as string, ...args));
        return next;
      }
      case Op.JUMP_IF_STACK_NOT_NULL: {
        // `ifNull(a, b)`: the jump skips the removal of the null, and b.
        const end = next + (operand as number);
        if (code[next] !== Op.POP || end > to) throw new NoExpression();
        stack.push(build.call('ifNull', pop(), this.read(next + 1, end)));
        return end;
      }
      default:
        throw new NoExpression();
    }
  }
}
