import { describe, expect, test } from '@jest/globals';
import {
  depthHeader,
  depthOf,
  depthOfRequest,
  MOST_DEPTH,
  withDepth,
  withLeastDepth,
} from '../../values/function-depth.ts';

const COUNT = '$hog_function_execution_count';

describe('the depth of an event', () => {
  test.each([
    { given: undefined, depth: 0 },
    { given: 0, depth: 0 },
    { given: 3, depth: 3 },
    { given: '4', depth: 4 },
    { given: 0.2, depth: 1 },
    { given: -1e9, depth: 0 },
    { given: 1e300, depth: MOST_DEPTH },
    { given: 'many', depth: 0 },
    { given: Number.NaN, depth: 0 },
    { given: { toString: 1, valueOf: 1 }, depth: 0 },
    { given: [5], depth: 0 },
  ])('%j', ({ given, depth }) => {
    expect(depthOf({ [COUNT]: given })).toBe(depth);
    // Whatever an event says, the request that it leads to says a number that can be read again.
    const [[name, value]] = Object.entries(depthHeader(depthOf({ [COUNT]: given }))) as [[string, string]];
    expect(depthOfRequest({ [name.toLowerCase()]: value })).toBe(depth + 1);
  });

  test('is raised, and never lowered, by what a request says', () => {
    expect(withLeastDepth({ a: 1, [COUNT]: 2 }, 5)).toEqual({ a: 1, [COUNT]: 5 });
    expect(withLeastDepth({ [COUNT]: 7 }, 5)).toEqual({ [COUNT]: 7 });
    expect(withLeastDepth({ a: 1 }, 0)).toEqual({ a: 1 });
    expect(withDepth({ [COUNT]: -100 }, 1)).toEqual({ [COUNT]: 1 });
  });
});

test.each([
  { value: undefined, depth: 0 },
  { value: '0', depth: 0 },
  { value: '11', depth: 11 },
  { value: '999', depth: 11 },
  { value: '-3', depth: 0 },
  { value: '1, 2', depth: 0 },
  { value: '9'.repeat(5_000), depth: 0 },
  { value: ['3'], depth: 0 },
])('a request that says %j', ({ value, depth }) => {
  expect(depthOfRequest({ 'sluice-function-depth': value })).toBe(depth);
});
