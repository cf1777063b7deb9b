import { expect, test } from '@jest/globals';
import { personName } from '../../properties/person-name.ts';

const MADE_UP = '0190aaaa-1111-7222-8333-444444444444';

test.each<[object, string[], string]>([
  [{ email: 'a@x.io', name: 'A', username: 'u' }, ['id'], 'a@x.io'],
  [{ email: '', name: 'A' }, ['id'], 'A'],
  [{ email: ' ', name: null, username: 'u' }, ['id'], 'u'],
  [{ email: { a: 1 }, name: 42 }, ['id'], '42'],
  [{ other: 'x' }, [MADE_UP, 'id'], 'id'],
  [{}, [MADE_UP], MADE_UP],
  [{}, [], ''],
  [Object.create({ email: 'inherited' }), ['id'], 'id'],
])('%j with %j is called %s', (properties, distinctIds, expected) => {
  expect(personName(properties as Record<string, unknown>, distinctIds)).toBe(expected);
});
