import type { Expr, FunctionDeclaration, Program } from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { append, compileExpr } from './compile-expression.ts';
import { compileBlock, compileFunctionBody } from './compile-statement.ts';
import { type Bytecode, HEADER, VERSION } from './operations.ts';
import { type Places, withPlaces } from './places.ts';
import { FunctionScope } from './scope.ts';

export { type Bytecode, HEADER, OP_NAMES, OPERAND_COUNTS, Op, VERSION } from './operations.ts';
export { type Places, placeIn } from './places.ts';

/**
 * Compiles a program, an expression or a template to bytecode. A template is an expression. The code of an expression
 * leaves its value on the stack. If `source` is given, errors contain the line and column.
 */
export function compileBytecode(node: Program | Expr, source?: string): Bytecode {
  return placed(source, () => {
    const scope = new FunctionScope(null, []);
    const code = node.kind === 'program' ? compileBlock(scope, node) : compileExpr(scope, node);
    return append([HEADER, VERSION], code);
  });
}

/** Compiles the same code, and says for each part of it where it is in the source. This is slower. */
export const compileWithPlaces = (node: Program | Expr, source: string): { code: Bytecode; places: Places } =>
  withPlaces(() => compileBytecode(node, source), source);

/** Compiles the body of a function without a header. The parameters are its first variables. */
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
