import { expect, test } from '@jest/globals';
import { fenced } from '../../workflows/details.ts';

const linesOf = (text: string) => fenced(text).split('\n').slice(3, -1);

test('a long line goes on in the next one, at a space where there is one', () => {
  const words = Array.from({ length: 40 }, (_, index) => `word-${index}`).join(' ');
  const lines = linesOf(words);
  expect(lines.join(' ')).toBe(words);
  expect(lines.length).toBeGreaterThan(3);
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(70);
});

test('what has no space is cut, and nothing of it is lost', () => {
  const key = 'x'.repeat(200);
  expect(linesOf(key).map((line) => line.length)).toEqual([70, 70, 60]);
  expect(linesOf(`a ${key}\nb`).join('')).toBe(`a ${key}b`);
});

test('the fence cannot be closed from within', () => {
  expect(linesOf('a\n~~~~~~\n# b')).toEqual(['a', '~~~', '# b']);
  expect(fenced('a')).toBe('\n\n~~~~~~\na\n~~~~~~');
});
