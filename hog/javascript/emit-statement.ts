import type {
  Block,
  Call,
  Expr,
  ForInStatement,
  ForStatement,
  FunctionDeclaration,
  Lambda,
  Program,
  Statement,
  TryStatement,
  VariableAssignment,
  VariableDeclaration,
} from '../ast/index.ts';
import { emitExpr, emitLookedAt, literal } from './emit-expression.ts';
import type { Emitter } from './emitter.ts';
import { changedName } from './owners.ts';

/**
 * Emits a program or an expression: the body of a function that takes the runtime table and returns a function of
 * globals and run.
 */
export function emitEntry(emitter: Emitter, node: Program | Expr): string {
  const body = emitter.body(() => {
    if (node.kind === 'program') return `${emitBlock(emitter, node)}\nreturn null;`;
    // In the VM, an `if` without an else value leaves nothing on the stack. Only at the top level does this yield null.
    if (node.kind === 'call' && node.name === 'if' && node.args.length === 2) {
      const [condition, value] = node.args as [Expr, Expr];
      return `return ${emitExpr(emitter, condition)} ? ${emitExpr(emitter, value)} : null;`;
    }
    return `return ${emitExpr(emitter, node)};`;
  });
  return `"use strict";\n${emitter.constants}return (G, E) => {\n${body}\n};`;
}

export function emitBlock(emitter: Emitter, node: Block | Program): string {
  return emitter.within(() => node.declarations.map((one) => emitStatement(emitter, one)).join('\n'));
}

export function emitStatement(emitter: Emitter, node: Statement): string {
  switch (node.kind) {
    case 'block':
      return `{\n${emitBlock(emitter, node)}\n}`;
    case 'exprStatement':
      return `${emitExpr(emitter, node.expr)};`;
    case 'returnStatement':
      return `return ${node.expr ? emitExpr(emitter, node.expr) : 'null'};`;
    case 'throwStatement':
      return `R.raise(${emitExpr(emitter, node.expr)}${emitter.last(node.span)});`;
    case 'variableDeclaration':
      return emitDeclaration(emitter, node);
    case 'variableAssignment':
      return `${emitAssignment(emitter, node)};`;
    case 'ifStatement': {
      const consequent = emitInner(emitter, node.consequent);
      const alternative = node.alternative ? ` else ${emitInner(emitter, node.alternative)}` : '';
      return `if (${emitExpr(emitter, node.condition)}) ${consequent}${alternative}`;
    }
    case 'whileStatement':
      return loop(emitter, node, emitExpr(emitter, node.condition), emitInner(emitter, node.body), '');
    case 'forStatement':
      return emitFor(emitter, node);
    case 'forInStatement':
      return emitForIn(emitter, node);
    case 'function':
      return emitFunction(emitter, node);
    case 'tryStatement':
      return emitTry(emitter, node);
  }
}

/** Emits a statement inside a block of its own. */
function emitInner(emitter: Emitter, node: Statement): string {
  return `{\n${emitter.within(() => emitStatement(emitter, node))}\n}`;
}

/** Emits a loop. Every iteration costs a step, so the step limit ends infinite loops. */
function loop(
  emitter: Emitter,
  { span }: Statement,
  condition: string,
  body: string,
  increment: string,
): string {
  return `for (;;) {\nE.meter.step(1${emitter.last(span)});\nif (!(${condition})) break;\n${body}\n${increment}\n}`;
}

function emitDeclaration(emitter: Emitter, node: VariableDeclaration): string {
  // The name is declared first, so that a function in the initial value can refer to this variable.
  const name = emitter.declare(node.name);
  return `let ${name} = ${node.expr ? emitExpr(emitter, node.expr) : 'null'};`;
}

function emitAssignment(emitter: Emitter, node: VariableAssignment): string {
  const { target, value, span } = node;
  const last = emitter.last(span);
  const emit = (one: Expr) => emitExpr(emitter, one);
  if (target.kind === 'tupleAccess') {
    return `R.set(E, ${emitLookedAt(emitter, target.tuple, [value])}, ${literal(target.index)}, ${emit(value)}${last})`;
  }
  if (target.kind === 'arrayAccess') {
    const object = emitLookedAt(emitter, target.object, [target.property, value]);
    return `R.set(E, ${object}, ${emit(target.property)}, ${emit(value)}${last})`;
  }
  const [name, ...path] = target.kind === 'field' ? target.chain : [];
  const variable = emitter.lookup(name as string) as string;
  const key = path.pop();
  if (key === undefined) {
    return `${variable} = ${changedName(node) === null ? emit(value) : emitChange(emitter, value as Call)}`;
  }
  const object = path.reduce((from, step) => `R.get(${from}, ${literal(step)})`, variable);
  return `R.set(E, ${object}, ${literal(key)}, ${emit(value)}${last})`;
}

/** Emits the call of a list function whose result goes into the variable that its list comes from. */
function emitChange(emitter: Emitter, call: Call): string {
  if (emitter.lookup(call.name) !== null) return emitExpr(emitter, call);
  const [list, ...rest] = call.args as [Expr, ...Expr[]];
  const args = [emitLookedAt(emitter, list, rest), ...rest.map((one) => emitExpr(emitter, one))];
  return `R.change(E, ${literal(emitter.called(call.name))}, [${args.join(', ')}]${emitter.last(call.span)})`;
}

function emitFor(emitter: Emitter, node: ForStatement): string {
  return emitter.within(() => {
    const first = node.initializer ? emitStatement(emitter, node.initializer as VariableDeclaration) : '';
    const condition = node.condition ? emitExpr(emitter, node.condition) : 'true';
    const increment = node.increment ? emitStatement(emitter, node.increment as VariableAssignment) : '';
    return `{\n${first}\n${loop(emitter, node, condition, emitInner(emitter, node.body), increment)}\n}`;
  });
}

function emitForIn(emitter: Emitter, node: ForInStatement): string {
  return emitter.within(() => {
    const [collection, keys, values] = [emitter.fresh('c'), emitter.fresh('k'), emitter.fresh('l')];
    const [index, limit] = [emitter.fresh('i'), emitter.fresh('n')];
    const last = emitter.last(node.collection.span ?? node.span);
    const head = [`const ${collection} = ${emitLookedAt(emitter, node.collection, [])};`];
    if (node.keyVar !== null) head.push(`const ${keys} = R.name(E, "keys", [${collection}]${last});`);
    head.push(`const ${values} = R.name(E, "values", [${collection}]${last});`, `let ${index} = 1;`);
    head.push(`const ${limit} = R.name(E, "length", [${values}]);`);
    const key = node.keyVar === null ? null : emitter.declare(node.keyVar);
    const value = emitter.declare(node.valueVar);
    head.push(`let ${key === null ? '' : `${key} = null, `}${value} = null;`);
    const body = [
      key === null ? '' : `${key} = R.get(${keys}, ${index});`,
      `${value} = R.get(${values}, ${index});`,
      emitInner(emitter, node.body),
    ];
    return `{\n${head.join('\n')}\n${loop(emitter, node, `R.le(${limit}, ${index})`, body.join('\n'), `${index}++;`)}\n}`;
  });
}

function emitFunction(emitter: Emitter, node: FunctionDeclaration): string {
  const name = emitter.declare(node.name);
  return `let ${name} = ${emitClosure(emitter, node.name, node.params, () => emitStatement(emitter, node.body))};`;
}

export function emitLambda(emitter: Emitter, node: Lambda): string {
  const { body } = node;
  return emitClosure(emitter, 'lambda', node.params, () => {
    if (body.kind === 'block') return emitStatement(emitter, body);
    return body.kind === 'placeholder'
      ? `${emitExpr(emitter, body.expr)};`
      : `return ${emitExpr(emitter, body)};`;
  });
}

function emitClosure(emitter: Emitter, name: string, params: string[], emit: () => string): string {
  return emitter.within(() => {
    const names = params.map((param) => emitter.declare(param));
    const body = emitter.body(emit);
    return `R.closure(${literal(name)}, ${params.length}, (${names.join(', ')}) => {\n${body}\nreturn null;\n})`;
  });
}

function emitTry(emitter: Emitter, node: TryStatement): string {
  const thrown = emitter.fresh('x');
  const body = emitInner(emitter, node.body);
  return emitter.within(() => {
    // The reference VM declares these two variables around all clauses. They hide variables of the same names.
    const error = emitter.declare('e');
    const type = emitter.declare('type');
    let clauses = `R.raise(${error});`;
    for (const clause of node.catches.toReversed()) {
      const code = emitter.within(() => {
        const own =
          clause.variable !== null && clause.variable !== 'e' ? emitter.declare(clause.variable) : null;
        const inner = emitInner(emitter, clause.body);
        return own === null ? inner : `{\nlet ${own} = ${error};\n${inner}\n}`;
      });
      clauses =
        clause.type === null || clause.type === 'Error'
          ? code
          : `if (R.eq(${literal(clause.type)}, ${type})) ${code} else {\n${clauses}\n}`;
    }
    return `try ${body} catch (${thrown}) {
let ${error} = R.caught(E, ${thrown});
let ${type} = R.get(${error}, "type");
${clauses}
}`;
  });
}
