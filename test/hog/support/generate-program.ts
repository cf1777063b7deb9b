import { type Block, build, type CatchClause, type Program, type Statement } from '../../../hog/ast/index.ts';
import { randomExpr } from './generate-expression.ts';
import type { Random } from './random.ts';

const { access, arithmetic, array, call, compare, constant, dict, field, integer, lambda } = build;

interface Scope {
  /** Variables that can be read and set. */
  names: string[];
  functions: { name: string; params: number }[];
  depth: number;
}

let serial = 0;
const fresh = (prefix: string) => `${prefix}${serial++}`;

/** A random program in which every loop ends. */
export function randomProgram(random: Random): Program {
  serial = 0;
  const declarations = statements(random, { names: [], functions: [], depth: 3 }, 4 + random.below(6));
  declarations.push({ kind: 'returnStatement', expr: randomExpr(random, 2, names(declarations)) });
  return { kind: 'program', declarations };
}

const names = (list: Statement[]) =>
  list.flatMap((one) => (one.kind === 'variableDeclaration' ? [one.name] : []));

function statements(random: Random, outer: Scope, count: number): Statement[] {
  const scope: Scope = { names: [...outer.names], functions: [...outer.functions], depth: outer.depth };
  return Array.from({ length: count }, () => statement(random, scope)).flat();
}

function block(random: Random, scope: Scope, extra: string[] = []): Block {
  const inner = { ...scope, names: [...scope.names, ...extra], depth: scope.depth - 1 };
  return { kind: 'block', declarations: statements(random, inner, 1 + random.below(3)) };
}

function statement(random: Random, scope: Scope): Statement[] {
  const expr = (depth = 2) => randomExpr(random, depth, scope.names);
  switch (random.below(scope.depth > 0 ? 15 : 6)) {
    case 0:
    case 1: {
      // Sometimes the name of a variable further out: it is hidden from here on.
      const name = random.chance(0.9) || scope.names.length === 0 ? fresh('v') : fresh('w');
      const made: Statement = { kind: 'variableDeclaration', name, expr: random.chance(0.1) ? null : expr() };
      scope.names.push(name);
      return [made];
    }
    case 2:
      return [{ kind: 'exprStatement', expr: call('print', expr(1), expr(2)) }];
    case 3:
      if (scope.names.length === 0) return [];
      return [{ kind: 'variableAssignment', target: field(random.pick(scope.names)), value: expr() }];
    case 4:
      return property(random, scope);
    case 5:
      return scope.functions.length > 0
        ? [useFunction(random, scope)]
        : [{ kind: 'exprStatement', expr: expr() }];
    case 6:
      return [
        {
          kind: 'ifStatement',
          condition: expr(),
          consequent: block(random, scope),
          alternative: random.chance(0.5) ? block(random, scope) : null,
        },
      ];
    case 7:
      return [counted(random, scope)];
    case 8:
      return whileLoop(random, scope);
    case 9:
    case 10:
      return [forIn(random, scope)];
    case 11:
      return [functionDeclaration(random, scope)];
    case 12: {
      const name = fresh('f');
      const free = [...scope.names];
      scope.functions.push({ name, params: 1 });
      return [
        {
          kind: 'variableDeclaration',
          name,
          expr: lambda(
            ['x'],
            random.chance(0.5) ? randomExpr(random, 2, [...free, 'x']) : block(random, scope, ['x']),
          ),
        },
      ];
    }
    default:
      return [tryCatch(random, scope)];
  }
}

function property(random: Random, scope: Scope): Statement[] {
  const name = fresh('o');
  const value = randomExpr(random, 1, scope.names);
  const target = random.chance(0.5)
    ? field(name, random.pick(['a', 'b', 'constructor', '__proto__']))
    : access(field(name), random.pick([integer(1), integer(3), constant('a')]));
  const start = random.chance(0.5)
    ? dict([[constant('a'), randomExpr(random, 1, scope.names)]])
    : array([integer(1), randomExpr(random, 1, scope.names)]);
  scope.names.push(name);
  return [
    { kind: 'variableDeclaration', name, expr: start },
    { kind: 'variableAssignment', target, value },
  ];
}

function useFunction(random: Random, scope: Scope): Statement {
  const { name, params } = random.pick(scope.functions);
  const count = Math.max(0, params + (random.chance(0.15) ? random.below(3) - 1 : 0));
  const args = Array.from({ length: count }, () => randomExpr(random, 1, scope.names));
  return { kind: 'exprStatement', expr: call('print', constant(name), call(name, ...args)) };
}

function counted(random: Random, scope: Scope): Statement {
  const name = fresh('i');
  return {
    kind: 'forStatement',
    initializer: { kind: 'variableDeclaration', name, expr: integer(0) },
    condition: compare('<', field(name), integer(random.below(4))),
    increment: {
      kind: 'variableAssignment',
      target: field(name),
      value: arithmetic('+', field(name), integer(1)),
    },
    // The counter can be read but is not among what may be set.
    body: {
      kind: 'block',
      declarations: [
        {
          kind: 'exprStatement',
          expr: call('print', field(name), randomExpr(random, 1, [...scope.names, name])),
        },
        ...block(random, scope).declarations,
      ],
    },
  };
}

function whileLoop(random: Random, scope: Scope): Statement[] {
  const name = fresh('n');
  return [
    { kind: 'variableDeclaration', name, expr: integer(random.below(4)) },
    {
      kind: 'whileStatement',
      condition: compare('>', field(name), integer(0)),
      body: {
        kind: 'block',
        declarations: [
          {
            kind: 'variableAssignment',
            target: field(name),
            value: arithmetic('-', field(name), integer(1)),
          },
          ...block(random, scope).declarations,
        ],
      },
    },
  ];
}

function forIn(random: Random, scope: Scope): Statement {
  const valueVar = fresh('e');
  const keyVar = random.chance(0.5) ? fresh('k') : null;
  return {
    kind: 'forInStatement',
    keyVar,
    valueVar,
    collection: random.chance(0.7) ? field('list') : randomExpr(random, 1, scope.names),
    body: block(random, scope, keyVar === null ? [valueVar] : [valueVar, keyVar]),
  };
}

function functionDeclaration(random: Random, scope: Scope): Statement {
  const name = fresh('f');
  const params = Array.from({ length: random.below(3) }, () => fresh('p'));
  const body = block(random, scope, params);
  if (random.chance(0.7)) {
    body.declarations.push({
      kind: 'returnStatement',
      expr: randomExpr(random, 2, [...scope.names, ...params]),
    });
  }
  scope.functions.push({ name, params: params.length });
  return { kind: 'function', name, params, body };
}

function tryCatch(random: Random, scope: Scope): Statement {
  const body = block(random, scope);
  if (random.chance(0.6)) {
    const type = random.pick(['Error', 'RetryError', 'NotImplementedError']);
    body.declarations.push({
      kind: 'throwStatement',
      expr: random.chance(0.9)
        ? call(type, randomExpr(random, 1, scope.names))
        : random.chance(0.5)
          ? call('HogError', constant('Odd'), constant('message'))
          : randomExpr(random, 1, scope.names),
    });
  } else if (random.chance(0.3)) {
    body.declarations.push({ kind: 'returnStatement', expr: randomExpr(random, 1, scope.names) });
  }
  const catches: CatchClause[] = [];
  if (random.chance(0.5)) {
    const variable = random.pick([null, 'e', fresh('c')]);
    const known = variable === null ? [] : [variable];
    catches.push({ variable, type: random.pick(['RetryError', 'Odd']), body: block(random, scope, known) });
  }
  if (catches.length === 0 || random.chance(0.7)) {
    const variable = random.pick([null, 'e', fresh('c')]);
    catches.push({ variable, type: null, body: block(random, scope, variable === null ? [] : [variable]) });
  }
  return { kind: 'tryStatement', body, catches, finallyBody: null };
}
