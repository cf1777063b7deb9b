import type { Call, Expr, Span } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { append, compileAll, compileExpr, compileName } from './compile-expression.ts';
import { type Bytecode, Op } from './operations.ts';
import type { FunctionScope } from './scope.ts';

export function compileCall(scope: FunctionScope, node: Call): Bytecode {
  const special = compileSpecial(scope, node);
  if (special) return special;
  if (node.distinct || node.filter || node.orderBy || node.withinGroup) {
    throw new SourceError('unsupported', 'Not supported in Hog: aggregation', undefined, node.span);
  }
  // In `f(a)(b)`, `f(a)` returns the function that is called with b. The arguments b go on the stack first.
  const outer = node.params ? compileAll(scope, node.args) : [];
  const code = append(outer, compileNamedCall(scope, node.name, node.params ?? node.args, node.span));
  if (node.params) code.push(Op.CALL_LOCAL, node.args.length);
  return code;
}

function compileNamedCall(scope: FunctionScope, name: string, args: Expr[], span?: Span): Bytecode {
  const code = compileAll(scope, args);
  const callee = compileName(scope, name, span);
  if (!callee) return append(code, [Op.CALL_GLOBAL, name, args.length]);
  return append(append(code, callee), [Op.CALL_LOCAL, args.length]);
}

/** Compiles the calls that have instructions of their own: operators and branches. Returns null for all other calls. */
function compileSpecial(scope: FunctionScope, node: Call): Bytecode | null {
  const { name, args } = node;
  if (name === 'not' && args.length === 1) return append(compileAll(scope, args), [Op.NOT]);
  if (name === 'and' && args.length > 1) return append(compileAll(scope, args), [Op.AND, args.length]);
  if (name === 'or' && args.length > 1) return append(compileAll(scope, args), [Op.OR, args.length]);
  if ((name === 'if' && args.length >= 2) || (name === 'multiIf' && args.length >= 2 && args.length <= 3)) {
    const { height } = scope;
    const condition = at(scope, height, args[0] as Expr);
    const yes = at(scope, height, args[1] as Expr);
    return branch(condition, yes, args.length === 3 ? at(scope, height, args[2] as Expr) : null);
  }
  if (name === 'multiIf' && args.length > 3) {
    const { height } = scope;
    let code = args.length % 2 === 1 ? at(scope, height, args.at(-1) as Expr) : null;
    for (let i = args.length - 2 - (args.length % 2); i >= 0; i -= 2) {
      const condition = at(scope, height, args[i] as Expr);
      code = branch(condition, at(scope, height, args[i + 1] as Expr), code);
    }
    return code;
  }
  if (name === 'ifNull' && args.length === 2) {
    const { height } = scope;
    const value = at(scope, height, args[0] as Expr);
    const fallback = at(scope, height, args[1] as Expr);
    return append(append(value, [Op.JUMP_IF_STACK_NOT_NULL, fallback.length + 1, Op.POP]), fallback);
  }
  if (name === 'sql' && args.length === 1) {
    throw new SourceError('unsupported', 'Not supported in Hog: `sql(…)`', undefined, node.span);
  }
  return null;
}

/** Compiles one part of a conditional. Every part starts at the same stack height, because only one of them runs. */
function at(scope: FunctionScope, height: number, node: Expr): Bytecode {
  scope.height = height;
  const code = compileExpr(scope, node);
  scope.height = height;
  return code;
}

/** Assembles the code of an `if` from its compiled parts. */
export function branch(condition: Bytecode, yes: Bytecode, no: Bytecode | null): Bytecode {
  const otherwise = no && no.length > 0 ? no : null;
  const code = append(condition, [Op.JUMP_IF_FALSE, yes.length + (otherwise ? 2 : 0)]);
  append(code, yes);
  return otherwise ? append(append(code, [Op.JUMP, otherwise.length]), otherwise) : code;
}
