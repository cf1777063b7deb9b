import { describe, expect, it } from '@jest/globals';
import { build, type Expr } from '../../../hog/ast/index.ts';
import { decompileExpression } from '../../../hog/bytecode/decompile.ts';
import { compileBytecode } from '../../../hog/bytecode/index.ts';

const { call, compare, constant, field, integer } = build;

const EXPRESSIONS: Record<string, Expr> = {
  'a constant': constant(true),
  'a comparison': compare('==', field('event'), constant('$pageview')),
  'a nested property': compare(
    'ilike',
    call('toString', field('person', 'properties', 'email')),
    constant('%@a.b%'),
  ),
  'a pattern': compare(
    '==',
    call('ifNull', call('match', field('properties', 'x'), constant('^a')), integer(0)),
    integer(1),
  ),
  'nested defaults': call(
    'ifNull',
    call('ifNull', field('a'), field('b')),
    call('ifNull', field('c'), integer(1)),
  ),
  'and, or, not': {
    kind: 'and',
    exprs: [
      { kind: 'or', exprs: [field('a'), field('b'), { kind: 'not', expr: field('c') }] },
      compare('in', field('properties', 'plan'), {
        kind: 'tuple',
        exprs: [constant('a'), integer(2), constant(null)],
      }),
    ],
  },
  'an element of a list': {
    kind: 'arrayAccess',
    object: { kind: 'array', exprs: [integer(1), build.float(2.5)] },
    property: integer(1),
    nullish: false,
  },
};

describe('decompileExpression', () => {
  it.each(Object.entries(EXPRESSIONS))('finds %s again', (_name, expression) => {
    const code = compileBytecode(expression);
    const found = decompileExpression(code);
    expect(found).toBeDefined();
    expect(compileBytecode(found as Expr)).toEqual(code);
  });

  it.each<[string, (string | number)[]]>([
    ['a branch', ['_H', 1, 29, 40, 2, 29, 39, 1, 30]],
    ['two values', ['_H', 1, 29, 29]],
    ['no value', ['_H', 1]],
    ['an operator without its operands', ['_H', 1, 11]],
    ['a global whose name is computed', ['_H', 1, 33, 5, 1, 1]],
    ['another version', ['_H', 0, 29]],
    ['an unknown instruction', ['_H', 1, 99]],
  ])('says nothing about %s', (_name, code) => {
    expect(decompileExpression(code)).toBeUndefined();
  });
});
