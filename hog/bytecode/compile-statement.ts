import type {
  Block,
  Expr,
  ForInStatement,
  ForStatement,
  FunctionDeclaration,
  Lambda,
  Program,
  ReturnStatement,
  Statement,
  TryStatement,
  VariableAssignment,
  VariableDeclaration,
} from '../ast/index.ts';
import { branch } from './compile-call.ts';
import { append, compileExpr, compileName, fault } from './compile-expression.ts';
import { type Bytecode, Op } from './operations.ts';
import { placed } from './places.ts';
import { FunctionScope } from './scope.ts';

const RETURN_NOTHING: ReturnStatement = { kind: 'returnStatement', expr: null };

export function compileBlock(scope: FunctionScope, node: Block | Program): Bytecode {
  const code: Bytecode = [];
  scope.start();
  for (const statement of node.declarations) append(code, compileStatement(scope, statement));
  return append(code, scope.end());
}

export function compileStatement(scope: FunctionScope, node: Statement): Bytecode {
  const code = placed(compile(scope, node), node.span);
  // Between statements, the stack holds the variables and nothing else.
  scope.height = scope.locals.length;
  return code;
}

function compile(scope: FunctionScope, node: Statement): Bytecode {
  switch (node.kind) {
    case 'block':
      return compileBlock(scope, node);
    case 'exprStatement':
      return append(compileExpr(scope, node.expr), [Op.POP]);
    case 'returnStatement':
      return append(node.expr ? compileExpr(scope, node.expr) : [Op.NULL], [Op.RETURN]);
    case 'throwStatement':
      return append(compileExpr(scope, node.expr), [Op.THROW]);
    case 'variableDeclaration':
      return compileDeclaration(scope, node);
    case 'variableAssignment':
      return compileAssignment(scope, node);
    case 'ifStatement': {
      const condition = compileCondition(scope, node.condition);
      const yes = compileInner(scope, node.consequent);
      return branch(condition, yes, node.alternative && compileInner(scope, node.alternative));
    }
    case 'whileStatement': {
      const condition = compileCondition(scope, node.condition);
      return loop(condition, compileInner(scope, node.body), []);
    }
    case 'forStatement':
      return compileFor(scope, node);
    case 'forInStatement':
      return compileForIn(scope, node);
    case 'function':
      return compileFunction(scope, node);
    case 'tryStatement':
      return compileTry(scope, node);
  }
}

/**
 * Compiles a branch or a loop body. It must not leave values on the stack, and only a block removes the variables that
 * it declares.
 */
function compileInner(scope: FunctionScope, node: Statement): Bytecode {
  if (node.kind === 'variableDeclaration' || node.kind === 'function') {
    throw fault('A declaration is only allowed inside a block', node.span);
  }
  return compileStatement(scope, node);
}

function compileCondition(scope: FunctionScope, node: Expr): Bytecode {
  const code = compileExpr(scope, node);
  scope.height = scope.locals.length;
  return code;
}

function loop(condition: Bytecode, body: Bytecode, increment: Bytecode): Bytecode {
  const code = append(condition, [Op.JUMP_IF_FALSE, body.length + increment.length + 2]);
  append(append(code, body), increment);
  return append(code, [Op.JUMP, -code.length - 2]);
}

function compileDeclaration(scope: FunctionScope, node: VariableDeclaration): Bytecode {
  const slot = scope.declare(node.name, node.span);
  if (!node.expr) return [Op.NULL];
  scope.pending.add(slot);
  const code = compileExpr(scope, node.expr);
  scope.pending.delete(slot);
  return code;
}

function compileAssignment(scope: FunctionScope, { target, value, span }: VariableAssignment): Bytecode {
  if (target.kind === 'tupleAccess') {
    const code = append(compileExpr(scope, target.tuple), [Op.INTEGER, target.index]);
    scope.height++;
    return append(append(code, compileExpr(scope, value)), [Op.SET_PROPERTY]);
  }
  if (target.kind === 'arrayAccess') {
    const code = append(compileExpr(scope, target.object), compileExpr(scope, target.property));
    return append(append(code, compileExpr(scope, value)), [Op.SET_PROPERTY]);
  }
  if (target.kind !== 'field') throw fault('Can not assign to this type of expression', target.span ?? span);
  const [name, ...path] = target.chain as [string, ...string[]];
  const variable = compileName(scope, name, target.span);
  if (!variable) {
    throw fault(
      `Variable "${name}" not declared in this scope. Can not assign to globals.`,
      target.span ?? span,
    );
  }
  const last = path.pop();
  if (last === undefined) {
    const set = variable[0] === Op.GET_LOCAL ? Op.SET_LOCAL : Op.SET_UPVALUE;
    return append(compileExpr(scope, value), [set, variable[1] as number]);
  }
  for (const key of path) variable.push(Op.STRING, key, Op.GET_PROPERTY);
  variable.push(Op.STRING, last);
  scope.height += 2;
  return append(append(variable, compileExpr(scope, value)), [Op.SET_PROPERTY]);
}

function compileFor(scope: FunctionScope, node: ForStatement): Bytecode {
  const { initializer, condition, increment } = node;
  // In other forms of `for`, the VM would pop a missing value or keep a value forever.
  if (!condition) throw fault('`for` needs a condition', node.span);
  if (increment?.kind === 'variableDeclaration') {
    throw fault('`for` cannot declare a variable in its third part', increment.span);
  }
  for (const part of [initializer, increment]) {
    if (part && part.kind !== 'variableDeclaration' && part.kind !== 'variableAssignment') {
      throw fault('`for` takes declarations and assignments only', part.span);
    }
  }
  if (initializer) scope.start();
  const code = initializer ? compileStatement(scope, initializer as VariableDeclaration) : [];
  const test = compileCondition(scope, condition);
  const step = increment ? compileStatement(scope, increment as VariableAssignment) : [];
  append(code, loop(test, compileInner(scope, node.body), step));
  return initializer ? append(code, scope.end()) : code;
}

function compileForIn(scope: FunctionScope, node: ForInStatement): Bytecode {
  scope.start();
  // These names are reserved for the loop's own variables.
  const collection = scope.declare('__H_expr_H__');
  scope.pending.add(collection);
  const code = compileExpr(scope, node.collection);
  scope.pending.delete(collection);
  const keys = node.keyVar === null ? null : scope.declare('__H_keys_H__');
  if (keys !== null) code.push(Op.GET_LOCAL, collection, Op.CALL_GLOBAL, 'keys', 1);
  const values = scope.declare('__H_values_H__');
  code.push(Op.GET_LOCAL, collection, Op.CALL_GLOBAL, 'values', 1);
  const index = scope.declare('__H_index_H__');
  code.push(Op.INTEGER, 1);
  const limit = scope.declare('__H_limit_H__');
  code.push(Op.GET_LOCAL, values, Op.CALL_GLOBAL, 'length', 1);
  const key = node.keyVar === null ? null : scope.declare(node.keyVar, node.span);
  if (key !== null) code.push(Op.NULL);
  const value = scope.declare(node.valueVar, node.span);
  code.push(Op.NULL);
  scope.height = scope.locals.length;

  const body: Bytecode = [];
  if (keys !== null && key !== null) {
    body.push(Op.GET_LOCAL, keys, Op.GET_LOCAL, index, Op.GET_PROPERTY, Op.SET_LOCAL, key);
  }
  body.push(Op.GET_LOCAL, values, Op.GET_LOCAL, index, Op.GET_PROPERTY, Op.SET_LOCAL, value);
  append(body, compileInner(scope, node.body));
  const test: Bytecode = [Op.GET_LOCAL, limit, Op.GET_LOCAL, index, Op.LT_EQ];
  const step: Bytecode = [Op.GET_LOCAL, index, Op.INTEGER, 1, Op.PLUS, Op.SET_LOCAL, index];
  append(code, loop(test, body, step));
  return append(code, scope.end());
}

function compileFunction(scope: FunctionScope, node: FunctionDeclaration): Bytecode {
  // The name is declared before the body is compiled, so that the function can call itself.
  scope.declare(node.name, node.span);
  const inner = new FunctionScope(scope, node.params, node.span);
  return closure(node.name, node.params, inner, compileFunctionBody(inner, node));
}

export const compileFunctionBody = (inner: FunctionScope, node: FunctionDeclaration): Bytecode =>
  compileStatement(inner, withReturn(node.body));

export function compileLambda(scope: FunctionScope, node: Lambda): Bytecode {
  const inner = new FunctionScope(scope, node.params, node.span);
  // The parser reads the body of `x -> {foo}` as a placeholder, but it is a block.
  const body: Statement =
    node.body.kind === 'block'
      ? withReturn(node.body)
      : node.body.kind === 'placeholder'
        ? withReturn({ kind: 'exprStatement', expr: node.body.expr })
        : { kind: 'returnStatement', expr: node.body };
  return closure('lambda', node.params, inner, compileStatement(inner, body));
}

/** Returns the body as a block that ends in a `return`. */
function withReturn(body: Statement): Statement {
  if (body.kind === 'returnStatement') return body;
  if (body.kind !== 'block') {
    const inner: Statement =
      body.kind === 'exprStatement' && body.expr.kind === 'placeholder'
        ? { kind: 'exprStatement', expr: body.expr.expr }
        : body;
    return { kind: 'block', declarations: [inner, RETURN_NOTHING] };
  }
  return body.declarations.at(-1)?.kind === 'returnStatement'
    ? body
    : { ...body, declarations: [...body.declarations, RETURN_NOTHING] };
}

function closure(name: string, params: string[], inner: FunctionScope, body: Bytecode): Bytecode {
  const code: Bytecode = [Op.CALLABLE, name, params.length, inner.upvalues.length, body.length];
  append(code, body);
  code.push(Op.CLOSURE, inner.upvalues.length);
  for (const upvalue of inner.upvalues) code.push(upvalue.isLocal, upvalue.index);
  return code;
}

function compileTry(scope: FunctionScope, node: TryStatement): Bytecode {
  if (node.finallyBody)
    throw fault('finally blocks are not yet supported', node.finallyBody.span ?? node.span);
  if (node.catches.length === 0) {
    throw fault('try statement must have at least one catch block', node.span);
  }
  const body = compileStatement(scope, node.body);
  const catches: Bytecode = [];
  const ends: number[] = [];
  scope.start();
  const error = scope.declare('e');
  catches.push(Op.GET_LOCAL, error, Op.STRING, 'type', Op.GET_PROPERTY);
  const type = scope.declare('type');
  for (const clause of node.catches) {
    scope.start();
    const caught: Bytecode = [];
    if (clause.variable !== null && clause.variable !== 'e') {
      scope.declare(clause.variable, clause.body.span);
      caught.push(Op.GET_LOCAL, error);
    }
    scope.height = scope.locals.length;
    append(caught, compileStatement(scope, clause.body));
    const pops = scope.end();
    if (clause.type !== null && clause.type !== 'Error') {
      catches.push(Op.STRING, clause.type, Op.GET_LOCAL, type, Op.EQ);
      // The length leaves out `pops`, as in the reference compiler. If the clause has a variable of its own, the jump
      // ends one element too early. vm/validate.ts corrects such jumps.
      catches.push(Op.JUMP_IF_FALSE, caught.length + 2);
    }
    append(append(catches, caught), pops);
    catches.push(Op.JUMP, null);
    ends.push(catches.length - 1);
  }
  catches.push(Op.POP, Op.THROW);
  const pops = scope.end();
  append(catches, pops);
  for (const place of ends) catches[place] = catches.length - place - pops.length - 1;
  const code: Bytecode = [Op.TRY, body.length + 4];
  append(code, body);
  code.push(Op.POP_TRY, Op.JUMP, catches.length);
  return append(code, catches);
}
