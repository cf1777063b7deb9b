import type { OrderExpr, WindowExpr, WindowFrame, WithFill } from '../ast/index.ts';
import { finish, maybeExpr, maybeExprs, toExpr } from './convert-expression.ts';
import {
  nodeAt,
  optionalList,
  optionalNode,
  optionalString,
  type RawNode,
  type Reader,
  stringAt,
  unexpected,
} from './reader.ts';

export const maybeOrder = (reader: Reader, raws: RawNode[] | null): OrderExpr[] | null =>
  raws && (Object.freeze(raws.map((one) => toOrder(reader, one))) as OrderExpr[]);

function toOrder(reader: Reader, raw: RawNode): OrderExpr {
  const order = stringAt(raw, 'order');
  if (order !== 'ASC' && order !== 'DESC') throw unexpected('order', order);
  const fill = optionalNode(raw, 'with_fill');
  const withFill: WithFill | null =
    fill &&
    finish<WithFill>(reader, fill, {
      kind: 'withFill',
      from: maybeExpr(reader, optionalNode(fill, 'from_value')),
      to: maybeExpr(reader, optionalNode(fill, 'to_value')),
      step: maybeExpr(reader, optionalNode(fill, 'step_value')),
    });
  return finish(reader, raw, {
    kind: 'orderExpr',
    expr: toExpr(reader, nodeAt(raw, 'expr')),
    order,
    withFill,
  });
}

export function toWindow(reader: Reader, raw: RawNode): WindowExpr {
  const method = optionalString(raw, 'frame_method');
  if (method !== null && method !== 'ROWS' && method !== 'RANGE') throw unexpected('frame', method);
  return finish(reader, raw, {
    kind: 'windowExpr',
    partitionBy: maybeExprs(reader, optionalList(raw, 'partition_by')),
    orderBy: maybeOrder(reader, optionalList(raw, 'order_by')),
    frameMethod: method,
    frameStart: toFrame(reader, optionalNode(raw, 'frame_start')),
    frameEnd: toFrame(reader, optionalNode(raw, 'frame_end')),
  });
}

function toFrame(reader: Reader, raw: RawNode | null): WindowFrame | null {
  if (!raw) return null;
  const frameType = stringAt(raw, 'frame_type');
  if (frameType !== 'CURRENT ROW' && frameType !== 'PRECEDING' && frameType !== 'FOLLOWING') {
    throw unexpected('frame type', frameType);
  }
  const frameValue = typeof raw.frame_value === 'number' ? raw.frame_value : null;
  return finish<WindowFrame>(reader, raw, { kind: 'windowFrame', frameType, frameValue });
}
