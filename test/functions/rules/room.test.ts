import { expect, test } from '@jest/globals';
import { Room } from '../../../functions/rules/room.ts';

test('what fits is shown as it is', () => {
  const room = new Room(20);
  const value = { a: ['bc', 1, null], d: 'e' };
  expect(room.value(value)).toBe(value);
  expect(room.text('0123')).toBe('0123');
});

test('texts are cut, and characters are not split', () => {
  expect(new Room(3).text('abcdef')).toBe('abc... (truncated)');
  expect(new Room(3).text('ab😀')).toBe('ab... (truncated)');
  expect(new Room(3).value('abcdef')).toBe('abc... (truncated)');
});

test('values that do not fit are left out, and take nothing from those that do', () => {
  const room = new Room(10);
  expect(room.value({ a: 'x'.repeat(20) })).toBe('... (truncated)');
  expect(room.value(['x'.repeat(8)])).toEqual(['x'.repeat(8)]);
  expect(room.value(['xx'])).toBe('... (truncated)');
});
