// Comparisons in HogQL. They never yield NULL: NULL equals only NULL, differs from everything else, and is not less or
// greater than anything.
import { isUuid } from '../../values/uuid.ts';
import type { Compare, Span } from '../ast/index.ts';
import { coerce, coerced, postgresType, type Target } from './coerce.ts';
import { fault } from './errors.ts';
import { likePattern } from './like.ts';
import type { Place } from './printer.ts';
import { regexParameter } from './regex.ts';
import { join, type Sql, sql } from './sql.ts';
import {
  isArray,
  isDateTime,
  isNumber,
  isSameType,
  isTuple,
  isZoned,
  type Type,
  typeName,
  type Value,
} from './types.ts';
import { searched } from './work.ts';

/** Two values that have been converted to a common type. */
export interface Aligned {
  left: Value;
  right: Value;
}

const isLooseText = (value: Value): boolean => value.loose === true && value.type === 'string';
const isTextLiteral = (value: Value): boolean => typeof value.literal === 'string';

/** Converts both sides to the type in which they are compared. */
export function align(place: Place, left: Value, right: Value, span?: Span): Aligned {
  if (left.type === 'null' || right.type === 'null') return { left, right };
  const target = commonScalar(left, right);
  if (target) return { left: coerce(place, left, target, span), right: coerce(place, right, target, span) };
  if (isArray(left.type) && isArray(right.type)) return alignArrays(left, right, span);
  if (isTuple(left.type) && isTuple(right.type)) return { left, right };
  throw fault(`A ${typeName(left.type)} cannot be compared with a ${typeName(right.type)}`, span);
}

function alignArrays(left: Value, right: Value, span?: Span): Aligned {
  const [one, other] = [(left.type as { array: Type }).array, (right.type as { array: Type }).array];
  if (isSameType(one, other) || (isDateTime(one) && isDateTime(other))) return { left, right };
  if (one === 'null') return { left: castArray(left, other), right };
  if (other === 'null') return { left, right: castArray(right, one) };
  if (typeof one === 'string' && typeof other === 'string' && isNumber(one) && isNumber(other)) {
    return { left: castArray(left, 'float'), right: castArray(right, 'float') };
  }
  throw fault(`A ${typeName(left.type)} cannot be compared with a ${typeName(right.type)}`, span);
}

export const castArray = (value: Value, element: Type): Value => ({
  sql: sql`(${value.sql})::${postgresType(element)}[]`,
  type: { array: element },
});

type Common = Exclude<Target, 'number'>;

/** Returns the type in which two scalars are compared, or null if there is none. Of two times, it is that of the first. */
export function commonScalar(left: Value, right: Value): Common | null {
  const [one, other] = [left.type, right.type];
  if (isZoned(one) || isZoned(other)) return commonTime(one, other);
  if (typeof one !== 'string' || typeof other !== 'string') return null;
  if (one === 'null') return other === 'null' || other === 'interval' ? null : (other as Common);
  if (other === 'null') return one === 'interval' ? null : (one as Common);
  if (one === other) return one === 'interval' ? null : (one as Common);
  const either = (first: Type, second: Type) =>
    (one === first && other === second) || (one === second && other === first);
  if (either('int', 'float')) return 'float';
  if (either('bool', 'int') || either('bool', 'float')) {
    const number = one === 'bool' ? right : left;
    return number.literal === 0 || number.literal === 1 ? 'bool' : 'float';
  }
  if (either('date', 'datetime')) return 'datetime';
  const text = one === 'string' ? left : other === 'string' ? right : null;
  if (text) {
    const type = text === left ? other : one;
    if (type === 'json' || type === 'bool') return 'string';
    if (type === 'datetime' || type === 'date') return type;
    if (type === 'uuid') return isTextLiteral(text) ? 'uuid' : 'string';
    // A number and a text (from a document or a literal) are compared as numbers.
    if (isNumber(type)) return 'float';
    return null;
  }
  if (one === 'json' || other === 'json') {
    const type = one === 'json' ? other : one;
    return isNumber(type) ? 'float' : 'string';
  }
  return null;
}

/** Returns the type in which a time with a zone and another value are compared: a text or a date is read in that zone. */
function commonTime(one: Type, other: Type): Common | null {
  const [time, rest] = isDateTime(one) ? [one, other] : [other, one];
  if (rest === 'json') return 'string';
  const fits = isDateTime(rest) || rest === 'date' || rest === 'string' || rest === 'null';
  return fits ? (time as Common) : null;
}

const OPERATORS = {
  '<': sql`<`,
  '<=': sql`<=`,
  '>': sql`>`,
  '>=': sql`>=`,
} as const;

/** Prints a comparison. `nullIsFalse` means that the caller treats NULL like false, so NULL need not be replaced. */
export function compareValues(
  place: Place,
  op: '==' | '!=' | '<' | '<=' | '>' | '>=',
  left: Value,
  right: Value,
  nullIsFalse: boolean,
  span?: Span,
): Sql {
  if (op === '==' || op === '!=') return equality(place, op === '==', left, right, nullIsFalse, span);
  const both = align(place, left, right, span);
  if (both.left.type === 'null' || both.right.type === 'null') return sql`false`;
  // Text is ordered by its bytes, independent of the database's locale.
  const text = both.left.type === 'string' ? sql` collate "C"` : sql``;
  const test = sql`(${both.left.sql} ${OPERATORS[op]} ${both.right.sql}${text})`;
  return nullIsFalse || (both.left.certain && both.right.certain) ? test : sql`coalesce(${test}, false)`;
}

function equality(
  place: Place,
  equal: boolean,
  left: Value,
  right: Value,
  nullIsFalse: boolean,
  span?: Span,
): Sql {
  if (left.type === 'null' || right.type === 'null') {
    const other = left.type === 'null' ? right : left;
    return equal ? sql`(${other.sql} is null)` : sql`(${other.sql} is not null)`;
  }
  if (left.items && right.items) return tupleEquality(place, equal, left, right, nullIsFalse, span);
  const both = align(place, left, right, span);
  const sides = [both.left.sql, both.right.sql] as const;
  const narrowed = equal ? (narrowing(left, right, sides[1]) ?? narrowing(right, left, sides[0])) : undefined;
  if (narrowed) {
    const test = sql`(${narrowed} and ${sides[0]} = ${sides[1]})`;
    return nullIsFalse ? test : sql`coalesce(${test}, false)`;
  }
  if (both.left.certain && both.right.certain) {
    return equal ? sql`(${sides[0]} = ${sides[1]})` : sql`(${sides[0]} <> ${sides[1]})`;
  }
  if (!equal) return sql`(${sides[0]} is distinct from ${sides[1]})`;
  if (both.left.certain || both.right.certain || place.printer.joining) {
    const test = sql`(${sides[0]} = ${sides[1]})`;
    return nullIsFalse ? test : sql`coalesce(${test}, false)`;
  }
  return sql`(${sides[0]} is not distinct from ${sides[1]})`;
}

/** Prints the condition by which an index finds the rows where a column has a literal as its value. */
const narrowing = ({ narrowed, type }: Value, { literal }: Value, value: Sql): Sql | undefined =>
  narrowed && type === 'uuid' && typeof literal === 'string' && isUuid(literal) ? narrowed(value) : undefined;

function tupleEquality(
  place: Place,
  equal: boolean,
  left: Value,
  right: Value,
  nullIsFalse: boolean,
  span?: Span,
): Sql {
  const [one, other] = [left.items as Value[], right.items as Value[]];
  if (one.length !== other.length) throw fault('Tuples of different lengths cannot be compared', span);
  const tests = one.map((item, index) =>
    equality(place, true, item, other[index] as Value, nullIsFalse && equal, span),
  );
  const all = sql`(${join(tests, sql` and `)})`;
  return equal ? all : sql`(not ${all})`;
}

/** Prints `x in (…)` with a list of values. */
export function membership(
  place: Place,
  negated: boolean,
  left: Value,
  members: Value[],
  nullIsFalse: boolean,
  span?: Span,
): Sql {
  const known = members.filter((one) => one.type !== 'null');
  const listed = listTest(place, left, known, span);
  const tests = listed ?? known.map((one) => equality(place, true, left, one, true, span));
  // The conversion of a text to a number can yield NULL.
  const certain = left.certain === true && listed !== null;
  if (members.length > known.length && !left.certain) tests.push(sql`(${left.sql} is null)`);
  if (tests.length === 0) return negated ? sql`true` : sql`false`;
  const found = tests.length === 1 ? (tests[0] as Sql) : sql`(${join(tests, sql` or `)})`;
  if (negated) return certain ? sql`(not ${found})` : sql`(${found} is not true)`;
  return nullIsFalse || certain ? found : sql`(${found} is true)`;
}

/**
 * Prints a test against a list of literals, with one parameter for the whole list. A text from a document is compared
 * as text with all literals. Returns null if the members need separate tests.
 */
function listTest(place: Place, left: Value, members: Value[], span?: Span): Sql[] | null {
  if (members.length === 0) return [];
  const { parameters } = place.printer;
  const literals = members.map((one) => one.literal);
  if (left.type === 'string' && (isLooseText(left) || literals.every((one) => typeof one === 'string'))) {
    if (!literals.every((one) => one !== undefined && one !== null)) return null;
    const texts = [...new Set(literals.map(String))];
    return [sql`(${left.sql} = any(${parameters.add('text[]', texts)}))`];
  }
  if (left.type === 'int' && members.every((one) => one.type === 'int' && one.literal !== undefined)) {
    return [sql`(${left.sql} = any(${parameters.add('bigint[]', literals.map(String))}))`];
  }
  if (left.type === 'uuid' && literals.every((one) => typeof one === 'string')) {
    const ids = literals.filter((one) => isUuid(one as string)).map(String);
    return ids.length === 0 ? [] : [sql`(${left.sql} = any(${parameters.add('uuid[]', ids)}))`];
  }
  void span;
  return null;
}

/** Prints LIKE, ILIKE and their negations. A literal pattern is translated here, any other pattern at run time. */
export function likeTest(
  place: Place,
  op: 'like' | 'ilike' | 'not like' | 'not ilike',
  left: Value,
  right: Value,
  nullIsFalse: boolean,
  span?: Span,
): Sql {
  const text = coerce(place, left, 'string', span);
  const pattern =
    typeof right.literal === 'string'
      ? place.printer.parameters.add('text', likePattern(right.literal))
      : sql`hq.like_pattern(${coerced(place, right, 'string', span)})`;
  const within = searched(text.sql, right, pattern);
  const test = op.endsWith('ilike') ? sql`(${within} ilike ${pattern})` : sql`(${within} like ${pattern})`;
  return settled(test, op.startsWith('not'), nullIsFalse);
}

/**
 * Prints a test with a regular expression. The pattern must be a literal; it is translated from RE2's syntax to that of
 * Postgres.
 */
export function regexTest(
  place: Place,
  left: Value,
  right: Value,
  options: { insensitive: boolean; negated: boolean; nullIsFalse: boolean },
  span?: Span,
): Sql {
  const pattern = regexParameter(place.printer, right, options.insensitive, span);
  const test = sql`(${coerced(place, left, 'string', span)} ~ ${pattern})`;
  return settled(test, options.negated, options.nullIsFalse);
}

function settled(test: Sql, negated: boolean, nullIsFalse: boolean): Sql {
  if (negated) return sql`(${test} is not true)`;
  return nullIsFalse ? test : sql`(${test} is true)`;
}

export const isOrder = (op: Compare['op']): op is '==' | '!=' | '<' | '<=' | '>' | '>=' =>
  op === '==' || op === '!=' || op === '<' || op === '<=' || op === '>' || op === '>=';
