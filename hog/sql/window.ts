import type { WindowExpr, WindowFrame, WindowFunction } from '../ast/index.ts';
import { printExpr } from './dispatch.ts';
import { fault, quote, unsupported } from './errors.ts';
import { printAggregateCall } from './functions/aggregates.ts';
import { windowFunction } from './functions/windows.ts';
import { printOrder } from './order.ts';
import type { Place } from './printer.ts';
import { digits, join, NOTHING, type Sql, sql } from './sql.ts';
import type { Value } from './types.ts';

export function printWindowFunction(place: Place, node: WindowFunction): Value {
  if (node.exprs.length > 0 && node.args.length > 0) {
    throw unsupported('A window function with parameters', node.span);
  }
  const args = node.exprs.length > 0 ? node.exprs : node.args;
  const { aggregatesBarred } = place.printer;
  if (aggregatesBarred !== null) throw fault(`A window cannot be used in ${aggregatesBarred}`, node.span);
  const make = windowFunction(node.name);
  const call = {
    kind: 'call' as const,
    name: node.name,
    args,
    params: null,
    distinct: false,
    orderBy: null,
    filter: null,
    withinGroup: null,
    ...(node.span && { span: node.span }),
  };
  const window = sql` over ${over(place, node)}`;
  if (!make) {
    const value = printAggregateCall(place, call, window);
    if (!value) throw fault(`Unsupported window function ${quote(node.name)}`, node.span);
    return value;
  }
  const values = args.map((one) => printExpr(place, one));
  const value = make(place, values, node);
  return { sql: sql`${value.sql}${window}`, type: value.type };
}

function over(place: Place, node: WindowFunction): Sql {
  if (node.over) return sql`(${printWindow(place, node.over)})`;
  const name = node.overName;
  const window = name === null ? undefined : place.scope.windows.get(name);
  if (!window) throw fault(`There is no window ${quote(name ?? '')}`, node.span);
  return sql`(${window})`;
}

export function printWindow(place: Place, window: WindowExpr): Sql {
  const parts: Sql[] = [];
  if (window.partitionBy?.length) {
    parts.push(sql`partition by ${join(window.partitionBy.map((one) => printExpr(place, one).sql))}`);
  }
  const order = window.orderBy?.length ? printOrder(place, window.orderBy) : NOTHING;
  if (order.text !== '') parts.push(sql`order by ${order}`);
  if (window.frameMethod && window.frameStart) {
    const method = window.frameMethod === 'ROWS' ? sql`rows` : sql`range`;
    const start = frame(window.frameStart);
    parts.push(
      window.frameEnd
        ? sql`${method} between ${start} and ${frame(window.frameEnd)}`
        : sql`${method} ${start}`,
    );
  }
  return parts.length > 0 ? join(parts, sql` `) : NOTHING;
}

const MAX_FRAME = 1_000_000_000;

function frame({ frameType, frameValue, span }: WindowFrame): Sql {
  if (frameType === 'CURRENT ROW') return sql`current row`;
  if (
    frameValue !== null &&
    (!Number.isSafeInteger(frameValue) || frameValue < 0 || frameValue > MAX_FRAME)
  ) {
    throw fault('The frame of a window must be a whole number of rows', span);
  }
  const count = frameValue === null ? sql`unbounded` : digits(frameValue);
  return frameType === 'PRECEDING' ? sql`${count} preceding` : sql`${count} following`;
}
