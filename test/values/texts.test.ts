import { expect, test } from '@jest/globals';
import { cleanText, cleanValue, isStorableText } from '../../values/texts.ts';

const NUL = '\u0000';
const HALF = '\ud800';

test.each([
  ['plain é 😀', 'plain é 😀'],
  ['', ''],
  [`a${NUL}b`, 'a\ufffdb'],
  [`a${HALF}`, 'a\ufffd'],
  [`\udc00${NUL}`, '\ufffd\ufffd'],
])('%j becomes %j', (text, clean) => {
  expect(cleanText(text)).toBe(clean);
  expect(isStorableText(text)).toBe(text === clean);
  expect(isStorableText(clean)).toBe(true);
});

test('every text of a value is cleaned and counted, names of properties too', () => {
  const value = JSON.parse(
    '{"a\\u0000": ["\\u0000", 1, {"b": "c"}], "__proto__": {"d": "\\ud800"}, "e": "f"}',
  );
  const { value: cleaned, changed } = cleanValue(value);
  expect(changed).toBe(3);
  expect(cleaned).toBe(value);
  expect(JSON.stringify(cleaned)).toBe(
    '{"__proto__":{"d":"\ufffd"},"e":"f","a\ufffd":["\ufffd",1,{"b":"c"}]}',
  );
  expect(Object.getPrototypeOf(cleaned)).toBe(Object.prototype);
});
