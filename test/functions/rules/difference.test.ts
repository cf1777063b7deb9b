import { describe, expect, test } from '@jest/globals';
import { differences } from '../../../functions/rules/difference.ts';

const all = (running: unknown, proposed: unknown) => differences(running, proposed, 100);

describe('the differences of two values', () => {
  test.each([
    ['the same texts', 'a', 'a', []],
    ['other texts', 'a', 'b', [{ path: '', running: 'a', proposed: 'b' }]],
    ['fields in another order', { a: 1, b: [2] }, { b: [2], a: 1 }, []],
    ['a field', { a: { b: 1 } }, { a: { b: 2 } }, [{ path: 'a.b', running: 1, proposed: 2 }]],
    ['a field that is new', { a: 1 }, { a: 1, b: null }, [{ path: 'b', proposed: null }]],
    ['a field that is gone', { a: 1, b: 2 }, { a: 1 }, [{ path: 'b', running: 2 }]],
    [
      'entries of lists',
      [1, 2, 3],
      [1, 5],
      [
        { path: '[1]', running: 2, proposed: 5 },
        { path: '[2]', running: 3 },
      ],
    ],
    ['a list in place of an object', { a: [] }, { a: {} }, [{ path: 'a', running: [], proposed: {} }]],
    ['null in place of an object', { a: null }, { a: {} }, [{ path: 'a', running: null, proposed: {} }]],
    ['other kinds', { a: 1 }, { a: '1' }, [{ path: 'a', running: 1, proposed: '1' }]],
    [
      'names with signs',
      { 'a.b': { '0': 1 } },
      { 'a.b': { '0': 2 } },
      [{ path: '["a.b"]["0"]', running: 1, proposed: 2 }],
    ],
    ['names of JavaScript', {}, { toString: 1 }, [{ path: 'toString', proposed: 1 }]],
  ])('of %s', (_what, running, proposed, expected) => {
    expect(all(running, proposed)).toEqual(expected);
  });

  test('are not more than wanted', () => {
    const list = Array.from({ length: 50 }, (_, n) => n);
    expect(differences(list, list.toReversed(), 7)).toHaveLength(7);
  });

  test('show long values in part', () => {
    const [found] = all('', 'x'.repeat(20_000));
    expect(found?.proposed).toBe(`${'x'.repeat(10_000)}... (truncated)`);
  });

  test('are found in deep values', () => {
    const deep = (inner: unknown) => {
      let value = inner;
      for (let n = 0; n < 500; n += 1) value = [value];
      return value;
    };
    expect(all(deep(1), deep(1))).toEqual([]);
    expect(all(deep(1), deep(2))).toHaveLength(1);
  });
});
