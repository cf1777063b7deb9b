import type { Expr, FunctionDeclaration, Program } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { compileExpr } from './compile-expression.ts';
import { compileBlock, compileFunctionBody } from './compile-statement.ts';
import { type Bytecode, HEADER, VERSION } from './operations.ts';
import { FunctionScope } from './scope.ts';

export { type Bytecode, HEADER, OP_NAMES, OPERAND_COUNTS, Op, VERSION } from './operations.ts';

/**
 * The bytecode of a program, an expression or a template (which is an expression: its value is left on the
 * stack). With the source text, errors say where.
 */
export function compileBytecode(node: Program | Expr, source?: string): Bytecode {
  return placed(source, () => {
    const scope = new FunctionScope(null, []);
    const code = node.kind === 'program' ? compileBlock(scope, node) : compileExpr(scope, node);
    return ([HEADER, VERSION] as Bytecode).concat(code);
  });
}

/** The body of a function that stands alone, without header: its parameters are the first variables. */
export function compileBody(node: FunctionDeclaration, source?: string): Bytecode {
  return placed(source, () => compileFunctionBody(new FunctionScope(null, node.params, node.span), node));
}

function placed<T>(source: string | undefined, compile: () => T): T {
  try {
    return compile();
  } catch (error) {
    if (error instanceof RangeError) throw new SourceError('too_deep', 'The source is nested too deep');
    throw error instanceof SourceError && source !== undefined ? error.in(source) : error;
  }
}
