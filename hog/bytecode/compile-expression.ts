import type {
  ArithmeticOperator,
  Between,
  Compare,
  CompareOperator,
  Constant,
  Expr,
  Field,
  Span,
  Tag,
  TagAttribute,
} from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { compileCall } from './compile-call.ts';
import { compileLambda } from './compile-statement.ts';
import { type Bytecode, Op } from './operations.ts';
import { movePlaces, placed } from './places.ts';
import type { FunctionScope } from './scope.ts';

const COMPARISONS: Record<Exclude<CompareOperator, 'in cohort' | 'not in cohort'>, number> = {
  '==': Op.EQ,
  '!=': Op.NOT_EQ,
  '>': Op.GT,
  '>=': Op.GT_EQ,
  '<': Op.LT,
  '<=': Op.LT_EQ,
  like: Op.LIKE,
  ilike: Op.ILIKE,
  'not like': Op.NOT_LIKE,
  'not ilike': Op.NOT_ILIKE,
  in: Op.IN,
  'not in': Op.NOT_IN,
  '=~': Op.REGEX,
  '!~': Op.NOT_REGEX,
  '=~*': Op.IREGEX,
  '!~*': Op.NOT_IREGEX,
};

const ARITHMETIC: Record<ArithmeticOperator, number> = {
  '+': Op.PLUS,
  '-': Op.MINUS,
  '*': Op.MULTIPLY,
  '/': Op.DIVIDE,
  '%': Op.MOD,
};

export const fault = (reason: string, span?: Span): SourceError =>
  new SourceError('compile', reason, undefined, span);

/** Appends code to code. `push(...more)` would put every element on JavaScript's stack. */
export function append(code: Bytecode, more: Bytecode): Bytecode {
  movePlaces(more, code);
  for (const element of more) code.push(element);
  return code;
}

/** Compiles an expression to code that leaves its value on the stack. */
export function compileExpr(scope: FunctionScope, node: Expr): Bytecode {
  const { height } = scope;
  const code = placed(compile(scope, node), node.span);
  scope.height = height + 1;
  return code;
}

export function compileAll(scope: FunctionScope, nodes: Expr[]): Bytecode {
  const code: Bytecode = [];
  for (const node of nodes) append(code, compileExpr(scope, node));
  return code;
}

function compile(scope: FunctionScope, node: Expr): Bytecode {
  switch (node.kind) {
    case 'constant':
      return compileConstant(node);
    case 'field':
      return compileField(scope, node);
    case 'and':
      return append(compileAll(scope, node.exprs), [Op.AND, node.exprs.length]);
    case 'or':
      return append(compileAll(scope, node.exprs), [Op.OR, node.exprs.length]);
    case 'not':
      return append(compileExpr(scope, node.expr), [Op.NOT]);
    case 'arithmetic':
      return append(compileAll(scope, [node.right, node.left]), [ARITHMETIC[node.op]]);
    case 'compare':
      return compileCompare(scope, node);
    case 'between':
      return compileBetween(scope, node);
    case 'call':
      return compileCall(scope, node);
    case 'exprCall':
      return append(compileAll(scope, [...node.args, node.callee]), [Op.CALL_LOCAL, node.args.length]);
    case 'lambda':
      return compileLambda(scope, node);
    case 'array':
      return append(compileAll(scope, node.exprs), [Op.ARRAY, node.exprs.length]);
    case 'tuple':
      return append(compileAll(scope, node.exprs), [Op.TUPLE, node.exprs.length]);
    case 'dict':
      return append(compileAll(scope, node.items.flat()), [Op.DICT, node.items.length]);
    case 'arrayAccess': {
      if (node.property.kind === 'constant' && node.property.value === 0 && !node.property.float) {
        throw fault('Array access starts from 1', node.property.span ?? node.span);
      }
      const get = node.nullish ? Op.GET_PROPERTY_NULLISH : Op.GET_PROPERTY;
      return append(compileAll(scope, [node.object, node.property]), [get]);
    }
    case 'tupleAccess': {
      const get = node.nullish ? Op.GET_PROPERTY_NULLISH : Op.GET_PROPERTY;
      return append(compileExpr(scope, node.tuple), [Op.INTEGER, node.index, get]);
    }
    case 'tag':
      return compileTag(scope, node);
    case 'placeholder':
      throw fault('Placeholders are not allowed in this context', node.span);
    default:
      throw new SourceError(
        'unsupported',
        `Not supported in Hog: ${DESCRIPTIONS[node.kind]}`,
        undefined,
        node.span,
      );
  }
}

const DESCRIPTIONS: Record<string, string> = {
  isDistinctFrom: '`is distinct from`',
  arraySlice: 'array slices',
  alias: '`as`',
  namedArgument: 'named arguments',
  typeCast: 'casts',
  tryCast: 'casts',
  windowFunction: 'window functions',
  columns: '`columns`',
  spread: 'spreads',
  positionalRef: 'references by position',
  selectQuery: 'queries',
  selectSetQuery: 'queries',
  valuesQuery: 'queries',
};

function compileConstant({ value, float }: Constant): Bytecode {
  if (value === null) return [Op.NULL];
  if (value === true) return [Op.TRUE];
  if (value === false) return [Op.FALSE];
  if (typeof value === 'string') return [Op.STRING, value];
  if (Number.isFinite(value)) return [float ? Op.FLOAT : Op.INTEGER, value];
  // JSON cannot hold infinity or NaN, so the code computes them by division.
  const dividend = Number.isNaN(value) ? 0 : Math.sign(value);
  return [Op.FLOAT, 0, Op.FLOAT, dividend, Op.DIVIDE];
}

/** Compiles a read of a local or captured variable. Returns null if no variable has the name. */
export function compileName(scope: FunctionScope, name: string, span?: Span): Bytecode | null {
  const local = scope.local(name);
  if (local !== -1) {
    if (scope.pending.has(local)) {
      throw fault(`Variable \`${name}\` is used before it has a value`, span);
    }
    return [Op.GET_LOCAL, local];
  }
  const upvalue = scope.upvalue(name);
  return upvalue === -1 ? null : [Op.GET_UPVALUE, upvalue];
}

function compileField(scope: FunctionScope, { chain, span }: Field): Bytecode {
  const code = compileName(scope, chain[0] as string, span);
  if (code) {
    for (const key of chain.slice(1)) code.push(Op.STRING, key, Op.GET_PROPERTY);
    return code;
  }
  const global: Bytecode = [];
  for (const key of chain.toReversed()) global.push(Op.STRING, key);
  global.push(Op.GET_GLOBAL, chain.length);
  return global;
}

function compileCompare(scope: FunctionScope, node: Compare): Bytecode {
  if (node.op === 'in cohort' || node.op === 'not in cohort') {
    const cohort = node.right.kind === 'constant' ? node.right.value : null;
    const which =
      typeof cohort === 'number' ? ` (cohort id=${cohort})` : cohort === null ? '' : ` (cohort: ${cohort})`;
    throw fault(
      `Can't use cohorts in real-time filters. Please inline the relevant expressions${which}.`,
      node.span,
    );
  }
  return append(compileAll(scope, [node.right, node.left]), [COMPARISONS[node.op]]);
}

/**
 * Compiles `between`. Its value is null if any operand is null. The operands stay on the stack, so that each is
 * evaluated once.
 */
function compileBetween(scope: FunctionScope, node: Between): Bytecode {
  const slot = scope.height;
  const [value, low, high] = [slot + 1, slot + 2, slot + 3];
  scope.height++;
  const code: Bytecode = [Op.NULL];
  append(code, compileAll(scope, [node.expr, node.low, node.high]));
  for (const part of [low, high, value]) code.push(Op.GET_LOCAL, part, Op.NULL, Op.NOT_EQ);
  const [first, second, both] = node.negated ? [Op.LT, Op.GT, Op.OR] : [Op.GT_EQ, Op.LT_EQ, Op.AND];
  const test: Bytecode = [Op.GET_LOCAL, low, Op.GET_LOCAL, value, first];
  test.push(Op.GET_LOCAL, high, Op.GET_LOCAL, value, second, both, 2);
  code.push(Op.AND, 3, Op.JUMP_IF_FALSE, test.length + 2);
  append(code, test);
  code.push(Op.JUMP, 1, Op.NULL, Op.SET_LOCAL, slot, Op.POP, Op.POP, Op.POP);
  return code;
}

/**
 * Compiles `<Name …/>`. It is a call if a variable has that name; otherwise it is a dictionary with the name under
 * `__hx_tag`.
 */
function compileTag(scope: FunctionScope, node: Tag): Bytecode {
  const callable = scope.local(node.name) !== -1 || scope.upvalue(node.name) !== -1;
  const code: Bytecode = callable ? [] : [Op.STRING, '__hx_tag', Op.STRING, node.name];
  scope.height += callable ? 0 : 2;
  for (const attribute of node.attributes) append(code, compileAttribute(scope, attribute));
  code.push(Op.DICT, node.attributes.length + (callable ? 0 : 1));
  if (!callable) return code;
  const callee = compileName(scope, node.name, node.span) as Bytecode;
  return append(append(code, callee), [Op.CALL_LOCAL, 1]);
}

function compileAttribute(scope: FunctionScope, { name, value }: TagAttribute): Bytecode {
  scope.height++;
  const code: Bytecode = [Op.STRING, name];
  if (!Array.isArray(value)) return append(code, compileExpr(scope, value));
  const { height } = scope;
  append(append(code, compileAll(scope, value)), [Op.ARRAY, value.length]);
  scope.height = height + 1;
  return code;
}
