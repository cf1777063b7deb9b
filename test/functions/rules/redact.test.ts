import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { redactor } from '../../../functions/rules/redact.ts';

const { value, hasNothing } = redactor(['s3cret-key', 'pä"ss'], {});

describe('JSON with nothing to hide', () => {
  test.each([
    ['{"a": "s3cret-key"}', false],
    ['{"s3cret-key": 1}', false],
    [`["${Buffer.from('s3cret-key').toString('base64')}"]`, false],
    [`["${Buffer.from('s3cret-key').toString('hex')}"]`, false],
    ['["s3cret\\u002dkey"]', false],
    ['["pä\\"ss"]', false],
    ['an answer that is no JSON', true],
    ['{"a": ["b", 1.5, null]}', true],
  ])('%s: %p', (json, expected) => {
    expect(hasNothing(json)).toBe(expected);
  });

  test('is never said to be so if a secret is a number, which can be written in several ways', () => {
    const numeric = redactor(['1000'], {});
    expect(numeric.value(JSON.parse('[1e3]'))).toEqual(['***REDACTED***']);
    expect(numeric.hasNothing('[1e3]')).toBe(false);
  });

  test('is left as it is', () => {
    const part = fc.constantFrom('s3cret-key', 's3cret', '-key', 'pä"ss', '"', '\\', 'a', 'ä', '\n');
    const text = fc.array(part, { maxLength: 4 }).map((parts) => parts.join(''));
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        text,
        fc.integer(),
        fc.constant(null),
        fc.array(tie('tree'), { maxLength: 4 }),
        fc.dictionary(text, tie('tree'), { maxKeys: 4 }),
      ),
    }));
    let without = 0;
    fc.assert(
      fc.property(tree, (one) => {
        if (!hasNothing(JSON.stringify(one))) return;
        without += 1;
        expect(value(one)).toEqual(one);
      }),
      { numRuns: 2_000 },
    );
    expect(without).toBeGreaterThan(100);
  });
});

test('nothing is left of a secret that contains another one', () => {
  const { text } = redactor({ a: 'geheim', b: 'geheim-und-lang' }, {});
  expect(text('x geheim-und-lang, geheim y')).toBe('x ***REDACTED***, ***REDACTED*** y');
});
