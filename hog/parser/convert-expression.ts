import {
  ARITHMETIC_OPERATORS,
  type ArithmeticOperator,
  type Block,
  COMPARE_OPERATORS,
  type CompareOperator,
  type Constant,
  type Expr,
  type ExprStatement,
  type Spanned,
  type Statement,
  type TagAttribute,
  type VariableAssignment,
} from '../ast/index.ts';
import { lowered } from './case-expression.ts';
import { SELECT_NODES, toSelect } from './convert-select.ts';
import { toBlock } from './convert-statement.ts';
import { maybeOrder, toWindow } from './convert-window.ts';
import {
  deeper,
  flag,
  isRaw,
  listAt,
  nodeAt,
  numberAt,
  optionalList,
  optionalNode,
  optionalString,
  optionalStrings,
  type RawNode,
  type Reader,
  spanOf,
  stringAt,
  stringsAt,
  unexpected,
} from './reader.ts';

type Converter = (reader: Reader, raw: RawNode) => Expr;

/** Adds the span to a node and freezes it. Trees are cached and shared between callers. */
export function finish<T extends { kind: string }>(reader: Reader, raw: RawNode, node: T): T {
  const span = spanOf(reader, raw);
  if (span) (node as Spanned).span = span;
  for (const value of Object.values(node)) if (Array.isArray(value)) Object.freeze(value);
  return Object.freeze(node);
}

export function toExpr(reader: Reader, raw: RawNode): Expr {
  return deeper(reader, raw, () => {
    if (SELECT_NODES.has(raw.node)) return toSelect(reader, raw) as Expr;
    const convert = converters.get(raw.node);
    if (!convert) throw unexpected('expression', raw.node);
    return finish(reader, raw, convert(reader, raw));
  });
}

export const toExprs = (reader: Reader, raws: RawNode[]): Expr[] =>
  Object.freeze(raws.map((one) => toExpr(reader, one))) as Expr[];

export const maybeExpr = (reader: Reader, raw: RawNode | null): Expr | null => raw && toExpr(reader, raw);

export const maybeExprs = (reader: Reader, raws: RawNode[] | null): Expr[] | null =>
  raws && toExprs(reader, raws);

function toConstant(reader: Reader, raw: RawNode): Constant {
  const { value } = raw;
  if (raw.value_type === 'number') return { kind: 'constant', ...numberOf(reader, raw, Number(value)) };
  if (typeof value === 'number') return { kind: 'constant', ...numberOf(reader, raw, value) };
  if (value === null || typeof value === 'string' || typeof value === 'boolean') {
    return { kind: 'constant', value };
  }
  throw unexpected('constant', value);
}

/**
 * Decides whether a number is a float. The parser's JSON has 1 for both `1` and `1.0`, so this looks at the source
 * text.
 */
function numberOf(reader: Reader, raw: RawNode, value: number): { value: number; float: boolean } {
  const span = spanOf(reader, raw);
  if (!span || !Number.isFinite(value)) return { value, float: !Number.isInteger(value) };
  const text = reader.source
    .slice(span.start, span.end)
    .replace(/\/\*[\s\S]*?\*\/|(?:\/\/|--)[^\n\r]*/g, '')
    .replace(/[\s+-]/g, '');
  return { value, float: /^0x/i.test(text) ? false : /[.e]/i.test(text) || !Number.isInteger(value) };
}

function toAttribute(reader: Reader, raw: RawNode): TagAttribute {
  const { value } = raw;
  return finish(reader, raw, {
    kind: 'tagAttribute',
    name: stringAt(raw, 'name'),
    value: Array.isArray(value) ? toExprs(reader, value.filter(isRaw)) : toExpr(reader, nodeAt(raw, 'value')),
  });
}

/**
 * Converts the body of a lambda. The parser reads `x -> {f()}` and `x -> {y := 1}` as placeholders, the latter with a
 * named argument in it.
 */
function toLambdaBody(reader: Reader, raw: RawNode): Expr | Block {
  if (raw.node === 'Block') return toBlock(reader, raw);
  if (raw.node !== 'Placeholder') return toExpr(reader, raw);
  const inner = nodeAt(raw, 'expr');
  const statement: Statement =
    inner.node === 'NamedArgument'
      ? finish<VariableAssignment>(reader, inner, {
          kind: 'variableAssignment',
          target: { kind: 'field', chain: [stringAt(inner, 'name')] },
          value: toExpr(reader, nodeAt(inner, 'value')),
        })
      : finish<ExprStatement>(reader, inner, { kind: 'exprStatement', expr: toExpr(reader, inner) });
  return finish<Block>(reader, raw, { kind: 'block', declarations: [statement] });
}

function compareOperator(raw: RawNode): CompareOperator {
  const op = stringAt(raw, 'op') as CompareOperator;
  if (!COMPARE_OPERATORS.includes(op)) throw unexpected('comparison', op);
  return op;
}

function arithmeticOperator(raw: RawNode): ArithmeticOperator {
  const op = stringAt(raw, 'op') as ArithmeticOperator;
  if (!ARITHMETIC_OPERATORS.includes(op)) throw unexpected('operator', op);
  return op;
}

const converters = new Map<string, Converter>(
  Object.entries<Converter>({
    Constant: toConstant,
    Field: (_reader, raw) => ({ kind: 'field', chain: stringsAt(raw, 'chain') }),
    Placeholder: (reader, raw) => ({ kind: 'placeholder', expr: toExpr(reader, nodeAt(raw, 'expr')) }),
    And: (reader, raw) => ({ kind: 'and', exprs: toExprs(reader, listAt(raw, 'exprs')) }),
    Or: (reader, raw) => ({ kind: 'or', exprs: toExprs(reader, listAt(raw, 'exprs')) }),
    Not: (reader, raw) => ({ kind: 'not', expr: toExpr(reader, nodeAt(raw, 'expr')) }),
    ArithmeticOperation: (reader, raw) => ({
      kind: 'arithmetic',
      op: arithmeticOperator(raw),
      left: toExpr(reader, nodeAt(raw, 'left')),
      right: toExpr(reader, nodeAt(raw, 'right')),
    }),
    CompareOperation: (reader, raw) => ({
      kind: 'compare',
      op: compareOperator(raw),
      left: toExpr(reader, nodeAt(raw, 'left')),
      right: toExpr(reader, nodeAt(raw, 'right')),
      ...(flag(raw, 'is_null_comparison_style') && { isNullStyle: true }),
    }),
    BetweenExpr: (reader, raw) => ({
      kind: 'between',
      expr: toExpr(reader, nodeAt(raw, 'expr')),
      low: toExpr(reader, nodeAt(raw, 'low')),
      high: toExpr(reader, nodeAt(raw, 'high')),
      negated: flag(raw, 'negated'),
    }),
    IsDistinctFrom: (reader, raw) => ({
      kind: 'isDistinctFrom',
      left: toExpr(reader, nodeAt(raw, 'left')),
      right: toExpr(reader, nodeAt(raw, 'right')),
      negated: flag(raw, 'negated'),
    }),
    Call: (reader, raw) => ({
      kind: 'call',
      ...lowered(stringAt(raw, 'name'), toExprs(reader, listAt(raw, 'args'))),
      params: maybeExprs(reader, optionalList(raw, 'params')),
      distinct: flag(raw, 'distinct'),
      orderBy: maybeOrder(reader, optionalList(raw, 'order_by')),
      filter: maybeExpr(reader, optionalNode(raw, 'filter_expr')),
      withinGroup: maybeOrder(reader, optionalList(raw, 'within_group')),
    }),
    ExprCall: (reader, raw) => ({
      kind: 'exprCall',
      callee: toExpr(reader, nodeAt(raw, 'expr')),
      args: toExprs(reader, listAt(raw, 'args')),
    }),
    Lambda: (reader, raw) => {
      const body = nodeAt(raw, 'expr');
      return {
        kind: 'lambda',
        params: stringsAt(raw, 'args'),
        body: toLambdaBody(reader, body),
      };
    },
    Array: (reader, raw) => ({ kind: 'array', exprs: toExprs(reader, listAt(raw, 'exprs')) }),
    Tuple: (reader, raw) => ({ kind: 'tuple', exprs: toExprs(reader, listAt(raw, 'exprs')) }),
    Dict: (reader, raw) => {
      if (!Array.isArray(raw.items)) throw unexpected('Dict.items', raw.items);
      return {
        kind: 'dict',
        items: raw.items.map((pair: unknown) => {
          if (!Array.isArray(pair) || !isRaw(pair[0]) || !isRaw(pair[1])) throw unexpected('pair', pair);
          return Object.freeze([toExpr(reader, pair[0]), toExpr(reader, pair[1])]) as [Expr, Expr];
        }),
      };
    },
    ArrayAccess: (reader, raw) => ({
      kind: 'arrayAccess',
      object: toExpr(reader, nodeAt(raw, 'array')),
      property: toExpr(reader, nodeAt(raw, 'property')),
      nullish: flag(raw, 'nullish'),
    }),
    TupleAccess: (reader, raw) => ({
      kind: 'tupleAccess',
      tuple: toExpr(reader, nodeAt(raw, 'tuple')),
      index: Number(raw.index),
      nullish: flag(raw, 'nullish'),
    }),
    ArraySlice: (reader, raw) => ({
      kind: 'arraySlice',
      array: toExpr(reader, nodeAt(raw, 'array')),
      from: maybeExpr(reader, optionalNode(raw, 'start_expr')),
      to: maybeExpr(reader, optionalNode(raw, 'end_expr')),
    }),
    Alias: (reader, raw) => ({
      kind: 'alias',
      alias: stringAt(raw, 'alias'),
      expr: toExpr(reader, nodeAt(raw, 'expr')),
    }),
    NamedArgument: (reader, raw) => ({
      kind: 'namedArgument',
      name: stringAt(raw, 'name'),
      value: toExpr(reader, nodeAt(raw, 'value')),
    }),
    TypeCast: (reader, raw) => ({
      kind: 'typeCast',
      expr: toExpr(reader, nodeAt(raw, 'expr')),
      typeName: stringAt(raw, 'type_name'),
    }),
    TryCast: (reader, raw) => ({
      kind: 'tryCast',
      expr: toExpr(reader, nodeAt(raw, 'expr')),
      typeName: stringAt(raw, 'type_name'),
    }),
    WindowFunction: (reader, raw) => {
      const over = optionalNode(raw, 'over_expr');
      return {
        kind: 'windowFunction',
        name: stringAt(raw, 'name'),
        exprs: toExprs(reader, optionalList(raw, 'exprs') ?? []),
        args: toExprs(reader, optionalList(raw, 'args') ?? []),
        over: over && toWindow(reader, over),
        overName: optionalString(raw, 'over_identifier'),
      };
    },
    ColumnsExpr: (reader, raw) => ({
      kind: 'columns',
      columns: maybeExprs(reader, optionalList(raw, 'columns')),
      regex: optionalString(raw, 'regex'),
      all: flag(raw, 'all_columns'),
      exclude: optionalStrings(raw, 'exclude') ?? [],
      replace: Object.entries(raw.replace ?? {}).map(([name, value]): [string, Expr] => {
        if (!isRaw(value)) throw unexpected('replacement', value);
        return [name, toExpr(reader, value)];
      }),
    }),
    SpreadExpr: (reader, raw) => ({ kind: 'spread', expr: toExpr(reader, nodeAt(raw, 'expr')) }),
    PositionalRef: (_reader, raw) => ({ kind: 'positionalRef', index: numberAt(raw, 'index') }),
    HogQLXTag: (reader, raw) => ({
      kind: 'tag',
      name: stringAt(raw, 'kind'),
      attributes: listAt(raw, 'attributes').map((one) => toAttribute(reader, one)),
    }),
  }),
);
