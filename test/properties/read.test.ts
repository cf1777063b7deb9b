import { describe, expect, test } from '@jest/globals';
import { FilterError, type FilterNode, readFilters } from '../../properties/index.ts';

const only = (document: unknown): FilterNode | undefined => readFilters(document).values[0];

describe('reading', () => {
  test('a missing type is event, a missing operator exact', () => {
    expect(only([{ key: 'a', value: 'b' }])).toEqual({
      kind: 'property',
      type: 'event',
      key: 'a',
      operator: 'exact',
      value: 'b',
      groupTypeIndex: null,
      negation: false,
      path: '0',
    });
  });

  test('min and max are other names, numbers as keys become text, nulls in lists are dropped', () => {
    expect(only([{ key: 1, value: 5, operator: 'min' }])).toMatchObject({ key: '1', operator: 'gte' });
    expect(only([{ key: 'a', value: 5, operator: 'max' }])).toMatchObject({ operator: 'lte' });
    expect(only([{ key: 'a', value: ['x', null] }])).toMatchObject({ value: ['x'] });
  });

  test('groups nest; a cohort calls a plain list "property"', () => {
    const document = {
      type: 'OR',
      values: [
        { type: 'property', values: [{ key: 'a', value: 1 }] },
        { key: 'b', value: 2 },
      ],
    };
    expect(readFilters(document)).toMatchObject({
      type: 'OR',
      values: [{ kind: 'group', type: 'AND', values: [{ key: 'a' }] }, { key: 'b' }],
    });
  });

  test('the old form names the operator behind two underscores', () => {
    expect(readFilters({ a__icontains: 'x', b: 'y', c__d: 'z' }).values).toMatchObject([
      { key: 'a', operator: 'icontains' },
      { key: 'b', operator: 'exact' },
      { key: 'c__d', operator: 'exact' },
    ]);
  });

  test('incomplete conditions are left out, and refused when strict', () => {
    const incomplete = [
      { key: 'a' },
      { value: 'x', operator: 'exact' },
      { type: 'empty' },
      { key: 'b', value: null },
    ];
    expect(readFilters(incomplete).values).toEqual([]);
    expect(() => readFilters([{ key: 'a' }], { strict: true, path: 'properties' })).toThrow(
      expect.objectContaining({ path: 'properties.0.value', message: 'This field is required.' }) as never,
    );
    expect(readFilters([{ key: 'a', operator: 'is_set' }], { strict: true }).values).toHaveLength(1);
  });

  test('nothing is no condition', () => {
    expect(readFilters(undefined).values).toEqual([]);
    expect(readFilters(null).values).toEqual([]);
  });

  test.each([
    ['text', 'A property filter must be an object', ''],
    [[5], 'A property filter must be an object', '0'],
    [[{ key: 'a', value: 1, operator: 'like' }], 'Unknown operator "like"', '0.operator'],
    [[{ key: 'a', value: 1, type: 'planet' }], 'Unknown property type "planet"', '0.type'],
    [
      [{ key: 'a', value: { x: 1 } }],
      'A value must be a string, a number, a boolean, or a list of these',
      '0.value',
    ],
    [{ type: 'XOR', values: [] }, 'PropertyGroup of unknown type "XOR"', 'type'],
    [{ a__regex: { x: 1 } }, 'A value must be a string, a number, a boolean, or a list of these', 'a__regex'],
    [{ type: 'OR' }, 'A group of filters needs a list of values', 'values'],
    [{ type: 'AND', values: { key: 'a' } }, 'A group of filters needs a list of values', 'values'],
    [
      { type: 'AND', values: [{ type: 'OR', values: [null] }] },
      'A property filter must be an object',
      'values.0.values.0',
    ],
    [[{ key: { x: 1 }, value: 1 }], 'A key must be a string', '0.key'],
    [[{ key: true, value: 1 }], 'A key must be a string', '0.key'],
    [[{ key: 'a', value: 1, negation: 'true' }], 'This must be true or false', '0.negation'],
    [[{ key: 'a', value: 1, operator: 5 }], 'Unknown operator "5"', '0.operator'],
    [[{ key: 'a', value: 1, type: [] }], 'Unknown property type "[]"', '0.type'],
    [[{ key: 'a', value: JSON.parse('1e999') }], 'This number is too large', '0.value'],
    [
      [{ key: 'a', value: ['x', ['y']] }],
      'A value must be a string, a number, a boolean, or a list of these',
      '0.value.1',
    ],
    [
      [{ key: 'a', value: ['x', 'y\0'] }],
      'A text must not contain the character 0 or half a surrogate pair',
      '0.value.1',
    ],
    [
      [{ key: 'a\ud800', value: 1 }],
      'A text must not contain the character 0 or half a surrogate pair',
      '0.key',
    ],
    [[{ key: 'id', type: 'cohort', value: 'mine' }], 'A cohort must be given by its id', '0.value'],
    [[{ key: 'id', type: 'cohort', value: '' }], 'A cohort must be given by its id', '0.value'],
    [[{ key: 'id', type: 'cohort', value: true }], 'A cohort must be given by its id', '0.value'],
    [[{ key: 'id', type: 'cohort', value: [] }], 'A cohort must be given by its id', '0.value'],
    [
      [{ key: 'a', value: ['0', '1e999'], operator: 'between' }],
      'between operator requires numeric values',
      '0.value',
    ],
    [
      [{ key: 'a', value: 1, type: 'group' }],
      'A group property needs a group_type_index from 0 to 4',
      '0.group_type_index',
    ],
    [
      [{ key: 'id', value: 5, type: 'cohort', operator: 'gt' }],
      'A cohort is tested with in or not_in, not with gt',
      '0.operator',
    ],
    [
      [{ key: 'a', value: 5, operator: 'between' }],
      'between operator requires a two-element array [min, max]',
      '0.value',
    ],
    [
      [{ key: 'a', value: ['x', 'y'], operator: 'between' }],
      'between operator requires numeric values',
      '0.value',
    ],
    [
      [{ key: 'a', value: [5, 2], operator: 'not_between' }],
      'not_between operator requires min value to be less than or equal to max value',
      '0.value',
    ],
  ])('%j is refused', (document, message, path) => {
    const read = () => readFilters(document);
    expect(read).toThrow(FilterError);
    expect(read).toThrow(expect.objectContaining({ message, path }) as never);
  });

  test('operators that ask for presence take any value', () => {
    for (const value of ['is_set', [], ['x', 'y'], { any: 'thing' }]) {
      expect(only([{ key: 'a', operator: 'is_set', value }])).toMatchObject({
        operator: 'is_set',
        value: null,
      });
    }
  });

  test('depth and number are limited', () => {
    let deep: unknown = { key: 'a', value: 1 };
    for (let i = 0; i < 30; i++) deep = { type: 'AND', values: [deep] };
    expect(() => readFilters(deep)).toThrow('nested more than 20 deep');
    const many = Array.from({ length: 1_001 }, () => ({ key: 'a', value: 1 }));
    expect(() => readFilters(many)).toThrow('More than 1000 conditions');
  });

  test('names of the object prototype are plain names', () => {
    expect(() => readFilters([{ key: 'a', value: 1, operator: 'constructor' }])).toThrow('Unknown operator');
    expect(() => readFilters([{ key: 'a', value: 1, type: '__proto__' }])).toThrow('Unknown property type');
    expect(only([{ key: '__proto__', value: 1 }])).toMatchObject({ key: '__proto__' });
  });
});
