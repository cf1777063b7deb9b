import type { Expr } from '../ast/index.ts';
import { findAggregate } from './functions/aggregates.ts';

/**
 * Returns whether an expression contains an aggregate. Aggregates inside subqueries and window functions do not count.
 */
export function hasAggregate(node: Expr): boolean {
  switch (node.kind) {
    case 'call':
      return findAggregate(node.name) !== null || node.args.some(hasAggregate);
    case 'and':
    case 'or':
    case 'array':
    case 'tuple':
      return node.exprs.some(hasAggregate);
    case 'not':
    case 'alias':
    case 'typeCast':
    case 'tryCast':
      return hasAggregate(node.expr);
    case 'compare':
    case 'arithmetic':
    case 'isDistinctFrom':
      return hasAggregate(node.left) || hasAggregate(node.right);
    case 'between':
      return hasAggregate(node.expr) || hasAggregate(node.low) || hasAggregate(node.high);
    case 'arrayAccess':
      return hasAggregate(node.object) || hasAggregate(node.property);
    case 'arraySlice':
      return hasAggregate(node.array);
    case 'tupleAccess':
      return hasAggregate(node.tuple);
    case 'dict':
      return node.items.some((pair) => pair.some(hasAggregate));
    case 'lambda':
      return node.body.kind !== 'block' && hasAggregate(node.body);
    default:
      return false;
  }
}
