// Prints HogQL expressions as SQL and determines their types.
import type { Alias, ArrayAccess, Between, Compare, Expr, IsDistinctFrom, Span } from '../ast/index.ts';
import { printArithmetic } from './arithmetic.ts';
import { castTo } from './casts.ts';
import { coerced } from './coerce.ts';
import { align, compareValues, isOrder, likeTest, membership, regexTest } from './compare.ts';
import { arrayElement, arrayOf, dictOf, tupleElement, tupleOf } from './compound.ts';
import { fault, unsupported } from './errors.ts';
import { printField } from './field.ts';
import { printCall } from './functions/index.ts';
import { jsonStep } from './json-path.ts';
import { constantValue, numberValue } from './literals.ts';
import type { Place } from './printer.ts';
import { join, type Sql, sql } from './sql.ts';
import { printMembershipQuery, printScalarQuery } from './subquery.ts';
import { isArray, isTuple, typeName, type Value } from './types.ts';
import { printWindowFunction } from './window.ts';

export function printExpr(place: Place, node: Expr): Value {
  const { printer } = place;
  return printer.enter(node.span, () => {
    const before = printer.ungrouped?.length ?? 0;
    const value = printer.sizes.part(() => printNode(place, node));
    // An expression of the GROUP BY may contain any fields.
    if (printer.ungrouped && printer.groups.has(value.sql.text)) printer.ungrouped.length = before;
    return value;
  });
}

/** Prints an expression as a condition. `nullIsFalse` means that the caller treats NULL like false. */
export function printCondition(place: Place, node: Expr, nullIsFalse: boolean): Sql {
  return place.printer.enter(node.span, () => condition(place, node, nullIsFalse));
}

function condition(place: Place, node: Expr, nullIsFalse: boolean): Sql {
  switch (node.kind) {
    case 'and':
    case 'or': {
      const parts = node.exprs.map((one) => printCondition(place, one, nullIsFalse));
      if (parts.length === 1) return parts[0] as Sql;
      return sql`(${join(parts, node.kind === 'and' ? sql` and ` : sql` or `)})`;
    }
    case 'not':
      return sql`(not ${printCondition(place, node.expr, false)})`;
    case 'compare':
      return printCompare(place, node, nullIsFalse);
    case 'between':
      return printBetween(place, node, nullIsFalse);
    default:
      return truth(place, printExpr(place, node), node.span);
  }
}

function truth(place: Place, value: Value, span?: Span): Sql {
  // A text from a JSON document is true if it is `true`.
  if (value.loose && value.type === 'string') return sql`(${value.sql} = 'true')`;
  return coerced(place, value, 'bool', span);
}

function printNode(place: Place, node: Expr): Value {
  const { printer } = place;
  switch (node.kind) {
    case 'constant':
      return constantValue(place.printer, node);
    case 'field':
      return printField(place, node);
    case 'and':
    case 'or':
    case 'not':
    case 'between':
    case 'compare':
      return { sql: condition(place, node, false), type: 'bool', certain: node.kind === 'compare' };
    case 'isDistinctFrom':
      return printDistinct(place, node);
    case 'arithmetic':
      return printArithmetic(
        place,
        node.op,
        printExpr(place, node.left),
        printExpr(place, node.right),
        node.span,
      );
    case 'call':
      return printCall(place, node);
    case 'windowFunction':
      return printWindowFunction(place, node);
    case 'array':
      return arrayOf(
        place,
        node.exprs.map((one) => printExpr(place, one)),
        node.span,
      );
    case 'tuple':
      return tupleOf(node.exprs.map((one) => printExpr(place, one)));
    case 'dict':
      return dictOf(
        place,
        node.items.map(([key, value]) => [printExpr(place, key), printExpr(place, value)]),
        node.span,
      );
    case 'arrayAccess':
      return printAccess(place, node);
    case 'tupleAccess': {
      const value = printExpr(place, node.tuple);
      // `properties.list.1` is an element of a list in a document.
      return value.json || value.type === 'json'
        ? jsonStep(place, value, numberValue(printer, node.index, false), node.span)
        : tupleElement(value, node.index, node.span);
    }
    case 'arraySlice': {
      const value = printExpr(place, node.array);
      if (!isArray(value.type)) throw fault(`A ${typeName(value.type)} has no slices`, node.span);
      const from = node.from ? coerced(place, printExpr(place, node.from), 'int') : sql`1::bigint`;
      const to = node.to
        ? coerced(place, printExpr(place, node.to), 'int')
        : sql`cardinality(${value.sql})::bigint`;
      return { sql: sql`(${value.sql})[hq.count_of(${from}) : hq.count_of(${to})]`, type: value.type };
    }
    case 'typeCast':
    case 'tryCast':
      return castTo(place, printExpr(place, node.expr), node.typeName, node.span);
    case 'alias':
      return printAliased(place, node);
    case 'selectQuery':
    case 'selectSetQuery':
      return printScalarQuery(place, node);
    case 'placeholder':
      throw fault('A placeholder has no value here', node.span);
    case 'lambda':
      throw fault('A lambda can only be an argument of a function', node.span);
    default:
      throw unsupported(NAMES[node.kind] ?? 'This', node.span);
  }
}

const NAMES: Partial<Record<Expr['kind'], string>> = {
  exprCall: 'Calling the result of an expression',
  namedArgument: 'An argument with a name',
  columns: 'COLUMNS(…)',
  spread: '*COLUMNS(…)',
  positionalRef: '#1',
  tag: 'A tag',
  valuesQuery: 'VALUES',
};

function printCompare(place: Place, node: Compare, nullIsFalse: boolean): Sql {
  const { op, span } = node;
  if (op === 'in' || op === 'not in') return printIn(place, node, nullIsFalse);
  if (op === 'in cohort' || op === 'not in cohort') return printCohort(place, node);
  const left = printExpr(place, node.left);
  const right = printExpr(place, node.right);
  if (isOrder(op)) return compareValues(place, op, left, right, nullIsFalse, span);
  if (op === 'like' || op === 'ilike' || op === 'not like' || op === 'not ilike') {
    return likeTest(place, op, left, right, nullIsFalse, span);
  }
  return regexTest(
    place,
    left,
    right,
    { insensitive: op.endsWith('*'), negated: op.startsWith('!'), nullIsFalse },
    span,
  );
}

function printIn(place: Place, node: Compare, nullIsFalse: boolean): Sql {
  const negated = node.op === 'not in';
  const { right } = node;
  const left = printExpr(place, node.left);
  if (right.kind === 'selectQuery' || right.kind === 'selectSetQuery') {
    return printMembershipQuery(place, left, right, negated);
  }
  if (right.kind === 'tuple' || right.kind === 'array') {
    const members = right.exprs.map((one) => printExpr(place, one));
    // In `(1, 2) in (1, 2)` the right side is one tuple, not two members.
    const single = left.items && !members.some((one) => one.items) ? [tupleOf(members)] : members;
    return membership(place, negated, left, single, nullIsFalse, node.span);
  }
  const value = printExpr(place, right);
  if (isArray(value.type)) {
    const both = align(place, arrayOf(place, [left], node.span), value, node.span);
    const test = sql`(${both.left.sql} <@ ${both.right.sql})`;
    return negated ? sql`(${test} is not true)` : sql`(${test} is true)`;
  }
  return membership(place, negated, left, [value], nullIsFalse, node.span);
}

function printCohort(place: Place, node: Compare): Sql {
  const person = coerced(place, printExpr(place, node.left), 'uuid', node.span);
  const { right } = node;
  if (right.kind !== 'constant' || typeof right.value !== 'number' || !Number.isSafeInteger(right.value)) {
    throw fault('A cohort must be given by its number: IN COHORT 5', right.span ?? node.span);
  }
  const isMember = place.printer.inCohort(person, constantValue(place.printer, right).sql);
  if (!isMember)
    throw fault('There are no cohorts here. Write the conditions of the cohort instead', node.span);
  // A plain `exists` becomes a join, which gives rows in another order than they were stored in.
  return node.op === 'in cohort' ? sql`(${isMember} is true)` : sql`(${isMember} is not true)`;
}

function printBetween(place: Place, node: Between, nullIsFalse: boolean): Sql {
  const value = printExpr(place, node.expr);
  const low = compareValues(place, '>=', value, printExpr(place, node.low), true, node.span);
  const high = compareValues(place, '<=', value, printExpr(place, node.high), true, node.span);
  const test = sql`(${low} and ${high})`;
  // Both `between` and `not between` are false if an operand is NULL.
  if (node.negated) {
    return sql`coalesce(not ${test}, false)`;
  }
  return nullIsFalse ? test : sql`coalesce(${test}, false)`;
}

function printDistinct(place: Place, node: IsDistinctFrom): Value {
  const both = align(place, printExpr(place, node.left), printExpr(place, node.right), node.span);
  const test = node.negated
    ? sql`(${both.left.sql} is not distinct from ${both.right.sql})`
    : sql`(${both.left.sql} is distinct from ${both.right.sql})`;
  return { sql: test, type: 'bool', certain: true };
}

function printAccess(place: Place, node: ArrayAccess): Value {
  const object = printExpr(place, node.object);
  const key = printExpr(place, node.property);
  if (object.json || object.type === 'json') return jsonStep(place, object, key, node.span);
  if (isTuple(object.type)) {
    if (typeof key.literal !== 'number') throw fault('A tuple is indexed by a number', node.span);
    return tupleElement(object, key.literal, node.span);
  }
  if (!isArray(object.type)) throw fault(`A ${typeName(object.type)} has no elements`, node.span);
  if (key.literal === 0) throw fault('Array indexes start from 1', node.property.span ?? node.span);
  return arrayElement(place, object, key, node.span);
}

/** Prints what has a name. Inside of it, the name means the column that it hides. */
function printAliased(place: Place, { alias, expr }: Alias): Value {
  const { aliases, expanding } = place.scope;
  if (aliases.get(alias) !== expr || expanding.has(alias)) return printExpr(place, expr);
  expanding.add(alias);
  try {
    return printExpr(place, expr);
  } finally {
    expanding.delete(alias);
  }
}
