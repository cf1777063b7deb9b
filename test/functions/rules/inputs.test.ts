import { expect, test } from '@jest/globals';
import { sortInputs } from '../../../functions/rules/inputs.ts';

const sorted = (reads: Record<string, string[]>) => sortInputs(new Map(Object.entries(reads)), 'inputs');

test('inputs come after those that they read, and otherwise as in the schema', () => {
  expect(sorted({ b: [], a: [], c: [] })).toEqual(['b', 'a', 'c']);
  expect(sorted({ a: [], c: ['b'], b: ['a'] })).toEqual(['a', 'b', 'c']);
  expect(sorted({ x: ['w'], w: [], z: ['w', 'y'], y: ['x'] })).toEqual(['w', 'x', 'y', 'z']);
  expect(sorted({ a: ['missing'] })).toEqual(['a']);
});

test('inputs that read each other in a circle are refused', () => {
  const circles: Record<string, string[]>[] = [
    ...[{ a: ['a'] }, { a: ['b'], b: ['a'] }, { c: [], a: ['b', 'c'], b: ['a'] }],
  ];
  for (const reads of circles) {
    expect(() => sorted(reads)).toThrow('Circular dependency');
  }
});
