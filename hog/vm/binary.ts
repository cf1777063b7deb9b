import { Op } from '../bytecode/index.ts';
import { compare, contains, like, matches, toNumber } from '../runtime/operators.ts';
import type { HogValue } from '../runtime/values.ts';

type Binary = (left: HogValue, right: HogValue) => HogValue;

const operations: [code: number, operation: Binary][] = [
  [Op.PLUS, (left, right) => toNumber(left) + toNumber(right)],
  [Op.MINUS, (left, right) => toNumber(left) - toNumber(right)],
  [Op.MULTIPLY, (left, right) => toNumber(left) * toNumber(right)],
  [Op.DIVIDE, (left, right) => toNumber(left) / toNumber(right)],
  [Op.MOD, (left, right) => toNumber(left) % toNumber(right)],
  [Op.EQ, (left, right) => compare('==', left, right)],
  [Op.NOT_EQ, (left, right) => compare('!=', left, right)],
  [Op.GT, (left, right) => compare('>', left, right)],
  [Op.GT_EQ, (left, right) => compare('>=', left, right)],
  [Op.LT, (left, right) => compare('<', left, right)],
  [Op.LT_EQ, (left, right) => compare('<=', left, right)],
  [Op.LIKE, (left, right) => like(left, right, false)],
  [Op.ILIKE, (left, right) => like(left, right, true)],
  [Op.NOT_LIKE, (left, right) => !like(left, right, false)],
  [Op.NOT_ILIKE, (left, right) => !like(left, right, true)],
  [Op.IN, (left, right) => contains(right, left)],
  [Op.NOT_IN, (left, right) => !contains(right, left)],
  [Op.REGEX, (left, right) => matches(left, right, false)],
  [Op.NOT_REGEX, (left, right) => !matches(left, right, false)],
  [Op.IREGEX, (left, right) => matches(left, right, true)],
  [Op.NOT_IREGEX, (left, right) => !matches(left, right, true)],
];

/** The instructions that take two operands, by their number. The left operand is on top of the stack. */
export const binaryOperations: readonly (Binary | undefined)[] = Array.from(
  { length: 64 },
  (_, code) => operations.find(([one]) => one === code)?.[1],
);
