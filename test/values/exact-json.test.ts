import { expect, test } from '@jest/globals';
import { ExactNumber, parseExactJson } from '../../values/exact-json.ts';

test.each([
  ...['1.0', '-1.50', '1e3', '1E-7', '-2.5e+10', '9007199254740993', '-9007199254740993', '0.1000', '-0'],
  ...['123456789012345678901234567890', '0.12345678901234567890', '1e400'],
])('%s keeps its spelling wherever it stands', (text) => {
  for (const document of [
    text,
    ` ${text} `,
    `[${text}]`,
    `[1,${text}]`,
    `{"a":${text}}`,
    `{"a": [ ${text} ]}`,
  ]) {
    const value = parseExactJson(document);
    expect(JSON.stringify(value)).toBe(document.replaceAll(' ', ''));
  }
  expect(parseExactJson(text)).toBeInstanceOf(ExactNumber);
});

test.each(['1', '-1', '0', '1.5', '100', '9007199254740991', '0.1', '-0.5'])(
  '%s is a plain number',
  (text) => {
    expect(parseExactJson(text)).toBe(Number(text));
    expect(parseExactJson(`{"a":"7c1e-4","b":[${text},1.0]}`)).toEqual({
      a: '7c1e-4',
      b: [Number(text), new ExactNumber('1.0')],
    });
  },
);

test('texts that look like numbers stay texts', () => {
  expect(parseExactJson('{"a":"1.0","b":": 1e5","c":"9007199254740993"}')).toEqual({
    ...{ a: '1.0', b: ': 1e5', c: '9007199254740993' },
  });
});
