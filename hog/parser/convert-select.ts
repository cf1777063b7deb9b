import {
  type ArrayJoin,
  type Cte,
  type Expr,
  type GroupingSet,
  type Join,
  type JoinConstraint,
  type LimitBy,
  type Pivot,
  type Placeholder,
  type Ratio,
  type Sample,
  SET_OPERATORS,
  type SelectNode,
  type SelectQuery,
  type SelectSetQuery,
  type SetOperator,
  type Unpivot,
  type WindowExpr,
} from '../ast/index.ts';
import { SourceError } from '../errors.ts';
import { finish, maybeExpr, maybeExprs, toExpr, toExprs } from './convert-expression.ts';
import { maybeOrder, toWindow } from './convert-window.ts';
import {
  deeper,
  flag,
  isRaw,
  listAt,
  nodeAt,
  optionalList,
  optionalNode,
  optionalString,
  optionalStrings,
  type RawNode,
  type Reader,
  spanOf,
  stringAt,
  unexpected,
} from './reader.ts';

export const SELECT_NODES = new Set(['SelectQuery', 'SelectSetQuery', 'ValuesQuery']);

const GROUP_MODES = new Set(['all', 'rollup', 'cube', 'grouping_sets']);
const ARRAY_JOINS = new Set(['ARRAY JOIN', 'LEFT ARRAY JOIN', 'INNER ARRAY JOIN']);

/** Converts a query. A `{placeholder}` can stand in its place. */
export function toSelect(reader: Reader, raw: RawNode): SelectNode | Placeholder {
  return deeper(reader, raw, () => {
    switch (raw.node) {
      case 'SelectQuery':
        return toQuery(reader, raw);
      case 'SelectSetQuery':
        return toSetQuery(reader, raw);
      case 'ValuesQuery': {
        if (!Array.isArray(raw.rows)) throw unexpected('rows', raw.rows);
        const rows = raw.rows.map((row: unknown) => {
          if (!Array.isArray(row)) throw unexpected('row', row);
          return toExprs(reader, row.filter(isRaw));
        });
        return finish(reader, raw, { kind: 'valuesQuery', rows });
      }
      case 'Placeholder':
        return toExpr(reader, raw) as Placeholder;
      case 'HogQLXTag':
        throw new SourceError('unsupported', 'A tag is not a query', reader.source, spanOf(reader, raw));
      default:
        throw unexpected('query', raw.node);
    }
  });
}

function toQuery(reader: Reader, raw: RawNode): SelectQuery {
  const from = optionalNode(raw, 'select_from');
  const mode = optionalString(raw, 'group_by_mode');
  if (mode !== null && !GROUP_MODES.has(mode)) throw unexpected('group by mode', mode);
  const limitBy = optionalNode(raw, 'limit_by');
  return finish(reader, raw, {
    kind: 'selectQuery',
    ctes: toCtes(reader, raw),
    distinct: flag(raw, 'distinct'),
    select: toExprs(reader, listAt(raw, 'select')),
    from: from && toJoin(reader, from),
    arrayJoin: toArrayJoin(reader, raw),
    prewhere: maybeExpr(reader, optionalNode(raw, 'prewhere')),
    where: maybeExpr(reader, optionalNode(raw, 'where')),
    groupBy: optionalList(raw, 'group_by')?.map((one) => toGroup(reader, one)) ?? null,
    groupByMode: mode as SelectQuery['groupByMode'],
    having: maybeExpr(reader, optionalNode(raw, 'having')),
    qualify: maybeExpr(reader, optionalNode(raw, 'qualify')),
    windows: Object.entries(raw.window_exprs ?? {}).map(([name, value]): [string, WindowExpr] => {
      if (!isRaw(value)) throw unexpected('window', value);
      return [name, toWindow(reader, value)];
    }),
    orderBy: maybeOrder(reader, optionalList(raw, 'order_by')),
    limit: maybeExpr(reader, optionalNode(raw, 'limit')),
    limitWithTies: flag(raw, 'limit_with_ties'),
    limitPercent: flag(raw, 'limit_percent'),
    offset: maybeExpr(reader, optionalNode(raw, 'offset')),
    limitBy:
      limitBy &&
      finish<LimitBy>(reader, limitBy, {
        kind: 'limitBy',
        n: toExpr(reader, nodeAt(limitBy, 'n')),
        offset: maybeExpr(reader, optionalNode(limitBy, 'offset_value')),
        exprs: toExprs(reader, listAt(limitBy, 'exprs')),
      }),
  });
}

function toSetQuery(reader: Reader, raw: RawNode): SelectSetQuery {
  return finish(reader, raw, {
    kind: 'selectSetQuery',
    first: toSelect(reader, nodeAt(raw, 'initial_select_query')),
    rest: listAt(raw, 'subsequent_select_queries').map((one) => {
      const operator = stringAt(one, 'set_operator') as SetOperator;
      if (!SET_OPERATORS.includes(operator)) throw unexpected('set operator', operator);
      return Object.freeze({ operator, query: toSelect(reader, nodeAt(one, 'select_query')) });
    }),
    ctes: toCtes(reader, raw),
    orderBy: maybeOrder(reader, optionalList(raw, 'order_by')),
    limit: maybeExpr(reader, optionalNode(raw, 'limit')),
    offset: maybeExpr(reader, optionalNode(raw, 'offset')),
  });
}

function toCtes(reader: Reader, raw: RawNode): Cte[] {
  return (optionalList(raw, 'ctes') ?? []).map((one): Cte => {
    const cteType = stringAt(one, 'cte_type');
    if (cteType !== 'subquery' && cteType !== 'column') throw unexpected('cte', cteType);
    return finish(reader, one, {
      kind: 'cte',
      name: stringAt(one, 'name'),
      cteType,
      expr: toExpr(reader, nodeAt(one, 'expr')),
      columns: optionalStrings(one, 'columns'),
      materialized: typeof one.materialized === 'boolean' ? one.materialized : null,
      recursive: flag(one, 'recursive'),
      usingKey: optionalStrings(one, 'using_key'),
    });
  });
}

function toGroup(reader: Reader, raw: RawNode): Expr | GroupingSet {
  if (raw.node !== 'GroupingSet') return toExpr(reader, raw);
  return finish(reader, raw, { kind: 'groupingSet', exprs: toExprs(reader, listAt(raw, 'exprs')) });
}

function toArrayJoin(reader: Reader, raw: RawNode): ArrayJoin | null {
  const operator = optionalString(raw, 'array_join_op');
  if (operator === null) return null;
  if (!ARRAY_JOINS.has(operator)) throw unexpected('array join', operator);
  return Object.freeze({
    operator: operator as ArrayJoin['operator'],
    list: toExprs(reader, listAt(raw, 'array_join_list')),
  });
}

function toJoin(reader: Reader, raw: RawNode): Join {
  return deeper(reader, raw, () => {
    const next = optionalNode(raw, 'next_join');
    const sample = optionalNode(raw, 'sample');
    const constraint = optionalNode(raw, 'constraint');
    const constraintType = constraint && stringAt(constraint, 'constraint_type');
    if (constraintType !== null && constraintType !== 'ON' && constraintType !== 'USING') {
      throw unexpected('constraint', constraintType);
    }
    return finish<Join>(reader, raw, {
      kind: 'join',
      joinType: optionalString(raw, 'join_type'),
      table: toTable(reader, nodeAt(raw, 'table')),
      tableArgs: maybeExprs(reader, optionalList(raw, 'table_args')),
      alias: optionalString(raw, 'alias'),
      columnAliases: optionalStrings(raw, 'column_aliases'),
      final: flag(raw, 'table_final'),
      sample: sample && toSample(reader, sample),
      constraint:
        constraint && constraintType !== null
          ? finish<JoinConstraint>(reader, constraint, {
              kind: 'joinConstraint',
              constraintType,
              expr: toExpr(reader, nodeAt(constraint, 'expr')),
            })
          : null,
      next: next && toJoin(reader, next),
    });
  });
}

function toSample(reader: Reader, raw: RawNode): Sample {
  const offset = optionalNode(raw, 'offset_value');
  return finish(reader, raw, {
    kind: 'sample',
    value: toRatio(reader, nodeAt(raw, 'sample_value')),
    offset: offset && toRatio(reader, offset),
  });
}

function toRatio(reader: Reader, raw: RawNode): Ratio {
  return finish(reader, raw, {
    kind: 'ratio',
    left: toExpr(reader, nodeAt(raw, 'left')),
    right: maybeExpr(reader, optionalNode(raw, 'right')),
  });
}

function toTable(reader: Reader, raw: RawNode): Expr | Pivot | Unpivot {
  return deeper(reader, raw, () => {
    if (raw.node === 'PivotExpr') {
      return finish<Pivot>(reader, raw, {
        kind: 'pivot',
        table: toTable(reader, nodeAt(raw, 'table')),
        aggregates: toExprs(reader, listAt(raw, 'aggregates')),
        columns: listAt(raw, 'columns').map((one) => ({
          column: toExpr(reader, nodeAt(one, 'column')),
          values: toExprs(reader, listAt(one, 'values')),
        })),
        groupBy: maybeExprs(reader, optionalList(raw, 'group_by')),
      });
    }
    if (raw.node === 'UnpivotExpr') {
      return finish<Unpivot>(reader, raw, {
        kind: 'unpivot',
        table: toTable(reader, nodeAt(raw, 'table')),
        columns: listAt(raw, 'columns').map((one) => ({
          valueColumns: toExpr(reader, nodeAt(one, 'value_columns')),
          nameColumns: toExpr(reader, nodeAt(one, 'name_columns')),
          values: toExprs(reader, listAt(one, 'unpivot_values')),
        })),
        includeNulls: flag(raw, 'include_nulls'),
      });
    }
    return toExpr(reader, raw);
  });
}
