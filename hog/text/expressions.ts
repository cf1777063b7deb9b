import type {
  Call,
  Constant,
  Expr,
  OrderExpr,
  WindowExpr,
  WindowFrame,
  WindowFunction,
} from '../ast/index.ts';
import { literal, name } from './names.ts';
import { selectText } from './selects.ts';

/** How tightly the parts of an expression hold together. What holds less tightly than its place allows gets parentheses. */
const LOOSE = 0;
const OR = 1;
const AND = 2;
const NOT = 3;
const COMPARISON = 4;
const SUM = 5;
const PRODUCT = 6;
const TIGHT = 8;

interface Written {
  text: string;
  holds: number;
}

const tight = (text: string): Written => ({ text, holds: TIGHT });
const within = (node: Expr, least: number): string => {
  const { text, holds } = write(node);
  return holds < least ? `(${text})` : text;
};

/** Writes an expression as HogQL. Reading the text again gives the same tree. */
export const expressionText = (node: Expr): string => write(node).text;
export const list = (nodes: readonly Expr[]): string => nodes.map(expressionText).join(', ');

const ARITHMETIC = { '+': SUM, '-': SUM, '*': PRODUCT, '/': PRODUCT, '%': PRODUCT } as const;

function write(node: Expr): Written {
  switch (node.kind) {
    case 'constant':
      return constant(node);
    case 'field':
      return tight(node.chain.map(name).join('.'));
    case 'placeholder':
      return tight(`{${expressionText(node.expr)}}`);
    case 'and':
      return { text: node.exprs.map((one) => within(one, AND + 1)).join(' AND '), holds: AND };
    case 'or':
      return { text: node.exprs.map((one) => within(one, OR + 1)).join(' OR '), holds: OR };
    case 'not':
      return { text: `NOT ${within(node.expr, NOT + 1)}`, holds: NOT };
    case 'arithmetic': {
      const holds = ARITHMETIC[node.op];
      return { text: `${within(node.left, holds)} ${node.op} ${within(node.right, holds + 1)}`, holds };
    }
    case 'compare':
      return comparison(node.isNullStyle ? isNull(node.op) : node.op, node);
    case 'isDistinctFrom':
      return comparison(node.negated ? 'IS NOT DISTINCT FROM' : 'IS DISTINCT FROM', node);
    case 'between': {
      const [expr, low, high] = [node.expr, node.low, node.high].map((one) => within(one, COMPARISON + 1));
      return { text: `${expr}${node.negated ? ' NOT' : ''} BETWEEN ${low} AND ${high}`, holds: COMPARISON };
    }
    case 'call':
      return tight(call(node));
    case 'exprCall':
      return tight(`${callee(node.callee)}(${list(node.args)})`);
    case 'lambda':
      return { text: lambda(node), holds: LOOSE };
    case 'array':
      return tight(`[${list(node.exprs)}]`);
    case 'tuple':
      return tight(node.exprs.length === 1 ? `tuple(${list(node.exprs)})` : `(${list(node.exprs)})`);
    case 'dict':
      return tight(`{${node.items.map((pair) => pair.map(expressionText).join(': ')).join(', ')}}`);
    case 'arrayAccess':
      return tight(
        `${within(node.object, TIGHT)}${node.nullish ? '?.' : ''}[${expressionText(node.property)}]`,
      );
    case 'tupleAccess':
      return tight(`${within(node.tuple, TIGHT)}${node.nullish ? '?.' : '.'}${node.index}`);
    case 'arraySlice': {
      const [from, to] = [node.from, node.to].map((one) => (one ? expressionText(one) : ''));
      return tight(`${within(node.array, TIGHT)}[${from}:${to}]`);
    }
    case 'alias':
      return { text: `${within(node.expr, LOOSE + 1)} AS ${name(node.alias)}`, holds: LOOSE };
    case 'namedArgument':
      return { text: `${name(node.name)} := ${expressionText(node.value)}`, holds: LOOSE };
    case 'typeCast':
      return tight(`CAST(${expressionText(node.expr)} AS ${node.typeName})`);
    case 'tryCast':
      return tight(`TRY_CAST(${expressionText(node.expr)} AS ${node.typeName})`);
    case 'windowFunction':
      return tight(windowFunction(node));
    case 'columns':
      return tight(columns(node));
    case 'spread':
      return tight(`*${expressionText(node.expr)}`);
    case 'positionalRef':
      return tight(`#${node.index}`);
    case 'tag':
      return tight(`<${node.name} />`);
    case 'selectQuery':
    case 'selectSetQuery':
    case 'valuesQuery':
      return tight(`(${selectText(node)})`);
  }
}

const isNull = (op: string): string => (op === '==' ? 'IS' : 'IS NOT');

function constant({ value, float }: Constant): Written {
  if (typeof value === 'string') return tight(literal(value));
  if (typeof value !== 'number') return tight(String(value));
  const text = Number.isFinite(value) ? String(value) : Number.isNaN(value) ? 'nan' : 'inf';
  const shown = value === Number.NEGATIVE_INFINITY ? '-inf' : text;
  const isWhole = float && /^-?\d+$/.test(shown);
  // `1 - -1`, and not a comment.
  return { text: isWhole ? `${shown}.0` : shown, holds: value < 0 ? PRODUCT : TIGHT };
}

function comparison(op: string, { left, right }: { left: Expr; right: Expr }): Written {
  const sides = [left, right].map((one) => within(one, COMPARISON + 1));
  return { text: `${sides[0]} ${WRITTEN_AS[op] ?? op.toUpperCase()} ${sides[1]}`, holds: COMPARISON };
}

const WRITTEN_AS: Readonly<Record<string, string>> = { '==': '=' };

function call(node: Call): string {
  const params = node.params ? `(${list(node.params)})` : '';
  const order = node.orderBy?.length ? ` ORDER BY ${orderText(node.orderBy)}` : '';
  const args = `${node.distinct ? 'DISTINCT ' : ''}${list(node.args)}${order}`;
  const group = node.withinGroup?.length ? ` WITHIN GROUP (ORDER BY ${orderText(node.withinGroup)})` : '';
  const filter = node.filter ? ` FILTER (WHERE ${expressionText(node.filter)})` : '';
  // The parser takes what stands before WITHIN GROUP for parameters.
  const isGrouped = group !== '' && params !== '' && args === '';
  return `${functionName(node.name)}${params}${isGrouped ? '' : `(${args})`}${group}${filter}`;
}

/** A function may be called like a word of the language: `if(…)`, `left(…)`. */
const functionName = (text: string): string => (/^[A-Za-z_$][\w$]*$/.test(text) ? text : name(text));

function callee(node: Expr): string {
  return node.kind === 'lambda' ? `(${expressionText(node)})` : within(node, TIGHT);
}

function lambda(node: Extract<Expr, { kind: 'lambda' }>): string {
  const params =
    node.params.length === 1 ? name(node.params[0] as string) : `(${node.params.map(name).join(', ')})`;
  const body = node.body.kind === 'block' ? '{ … }' : expressionText(node.body);
  return `${params} -> ${body}`;
}

function windowFunction(node: WindowFunction): string {
  const args = node.args.length > 0 ? `(${list(node.exprs)})(${list(node.args)})` : `(${list(node.exprs)})`;
  const over = node.over ? `(${windowText(node.over)})` : name(node.overName ?? '');
  return `${functionName(node.name)}${args} OVER ${over}`;
}

export function windowText(node: WindowExpr): string {
  const parts: string[] = [];
  if (node.partitionBy?.length) parts.push(`PARTITION BY ${list(node.partitionBy)}`);
  if (node.orderBy?.length) parts.push(`ORDER BY ${orderText(node.orderBy)}`);
  if (node.frameMethod && node.frameStart) {
    const [start, end] = [node.frameStart, node.frameEnd].map((one) => one && frameText(one));
    parts.push(`${node.frameMethod} ${end ? `BETWEEN ${start} AND ${end}` : start}`);
  }
  return parts.join(' ');
}

const frameText = ({ frameType, frameValue }: WindowFrame): string =>
  frameType === 'CURRENT ROW' ? frameType : `${frameValue ?? 'UNBOUNDED'} ${frameType}`;

export const orderText = (order: readonly OrderExpr[]): string =>
  order.map((one) => `${expressionText(one.expr)} ${one.order}`).join(', ');

function columns(node: Extract<Expr, { kind: 'columns' }>): string {
  const base = node.columns
    ? `COLUMNS(${list(node.columns)})`
    : node.regex === null
      ? '*'
      : `COLUMNS(${literal(node.regex)})`;
  const left = node.exclude.length > 0 ? ` EXCLUDE (${node.exclude.map(name).join(', ')})` : '';
  const replaced = node.replace.map(([as, expr]) => `${expressionText(expr)} AS ${name(as)}`);
  return `${base}${left}${replaced.length > 0 ? ` REPLACE (${replaced.join(', ')})` : ''}`;
}
