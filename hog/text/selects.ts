import type {
  Cte,
  Expr,
  GroupingSet,
  Join,
  Placeholder,
  SelectNode,
  SelectQuery,
  SelectSetQuery,
} from '../ast/index.ts';
import { expressionText, list, orderText, windowText } from './expressions.ts';
import { name } from './names.ts';

/** Writes a query as HogQL. Reading the text again gives the same tree. */
export function selectText(node: SelectNode | Placeholder): string {
  switch (node.kind) {
    case 'selectQuery':
      return queryText(node);
    case 'selectSetQuery':
      return setText(node);
    case 'valuesQuery':
      return `VALUES ${node.rows.map((row) => `(${list(row)})`).join(', ')}`;
    case 'placeholder':
      return expressionText(node);
  }
}

/** A part of a query, with the word before it. Nothing, if the query does not have it. */
const part = (word: string, text: string | null | undefined | false): string =>
  text ? ` ${word} ${text}` : '';
const clause = (word: string, node: Expr | null): string => part(word, node && expressionText(node));

function queryText(node: SelectQuery): string {
  const { limitBy, arrayJoin } = node;
  return [
    ctesText(node.ctes),
    `SELECT ${node.distinct ? 'DISTINCT ' : ''}${list(node.select)}`,
    part('FROM', node.from && joinText(node.from)),
    arrayJoin ? ` ${arrayJoin.operator} ${list(arrayJoin.list)}` : '',
    clause('PREWHERE', node.prewhere),
    clause('WHERE', node.where),
    groupText(node),
    clause('HAVING', node.having),
    clause('QUALIFY', node.qualify),
    part('WINDOW', node.windows.map(([as, window]) => `${name(as)} AS (${windowText(window)})`).join(', ')),
    part('ORDER BY', node.orderBy && orderText(node.orderBy)),
    limitBy
      ? ` LIMIT ${expressionText(limitBy.n)}${clause('OFFSET', limitBy.offset)} BY ${list(limitBy.exprs)}`
      : '',
    clause('LIMIT', node.limit),
    node.limitPercent ? ' %' : '',
    node.limitWithTies ? ' WITH TIES' : '',
    clause('OFFSET', node.offset),
  ].join('');
}

function groupText({ groupBy, groupByMode }: SelectQuery): string {
  if (groupByMode === 'all') return ' GROUP BY ALL';
  const groups = (groupBy ?? []).map(groupOf).join(', ');
  if (groups === '') return '';
  if (groupByMode === 'grouping_sets') return ` GROUP BY GROUPING SETS (${groups})`;
  return groupByMode ? ` GROUP BY ${groupByMode.toUpperCase()}(${groups})` : ` GROUP BY ${groups}`;
}

const groupOf = (node: Expr | GroupingSet): string =>
  node.kind === 'groupingSet' ? `(${list(node.exprs)})` : expressionText(node);

function setText(node: SelectSetQuery): string {
  const inner = (one: SelectSetQuery['first']) =>
    one.kind === 'selectSetQuery' || (one.kind === 'selectQuery' && endsIt(one))
      ? `(${selectText(one)})`
      : selectText(one);
  const rest = node.rest.map(({ operator, query }) => ` ${operator} ${inner(query)}`).join('');
  const order = part('ORDER BY', node.orderBy && orderText(node.orderBy));
  return `${ctesText(node.ctes)}${inner(node.first)}${rest}${order}${clause('LIMIT', node.limit)}${clause('OFFSET', node.offset)}`;
}

/** Whether what follows a query could be taken for a part of it. */
const endsIt = ({ ctes, orderBy, limit, offset, limitBy }: SelectQuery): boolean =>
  Boolean(ctes.length > 0 || orderBy || limit || offset || limitBy);

function ctesText(ctes: readonly Cte[]): string {
  if (ctes.length === 0) return '';
  const recursive = ctes.some((one) => one.recursive) ? 'RECURSIVE ' : '';
  const written = ctes.map(({ name: as, cteType, expr, columns, materialized }) => {
    if (cteType === 'column') return `${expressionText(expr)} AS ${name(as)}`;
    const named = columns ? `(${columns.map(name).join(', ')})` : '';
    const kept = materialized === null ? '' : materialized ? 'MATERIALIZED ' : 'NOT MATERIALIZED ';
    return `${name(as)}${named} AS ${kept}${expressionText(expr)}`;
  });
  return `WITH ${recursive}${written.join(', ')} `;
}

function joinText(node: Join): string {
  const { table, tableArgs, alias, constraint, next, joinType } = node;
  const of = table.kind === 'pivot' || table.kind === 'unpivot' ? `(${table.kind})` : expressionText(table);
  const sample = node.sample ? ` SAMPLE ${ratio(node.sample.value)}` : '';
  const text = [
    joinType === null ? '' : `${joinType} `,
    of,
    tableArgs ? `(${list(tableArgs)})` : '',
    alias === null ? '' : ` AS ${name(alias)}`,
    node.columnAliases ? `(${node.columnAliases.map(name).join(', ')})` : '',
    node.final ? ' FINAL' : '',
    sample,
    constraint ? constraintText(constraint) : '',
  ].join('');
  return next ? `${text} ${joinText(next)}` : text;
}

const constraintText = ({ constraintType, expr }: NonNullable<Join['constraint']>): string =>
  constraintType === 'ON'
    ? ` ON ${expressionText(expr)}`
    : ` USING ${expr.kind === 'tuple' ? expressionText(expr) : `(${expressionText(expr)})`}`;

const ratio = ({ left, right }: { left: Expr; right: Expr | null }): string =>
  right ? `${expressionText(left)}/${expressionText(right)}` : expressionText(left);
