import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { uuidv7 } from '../../db/uuid.ts';
import { isUuid } from '../../values/uuid.ts';

describe('uuidv7', () => {
  test('carries its moment, version and variant, and is unique', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 1 }), (milliseconds) => {
        const id = uuidv7(milliseconds);
        expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
        expect(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16)).toBe(milliseconds);
        expect(isUuid(id)).toBe(true);
        expect(uuidv7(milliseconds)).not.toBe(id);
      }),
    );
  });

  test('sorts by its moment', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 2 ** 48 - 2 }), fc.nat({ max: 1000 }), (milliseconds, more) => {
        expect(uuidv7(milliseconds) < uuidv7(Math.min(milliseconds + more + 1, 2 ** 48 - 1))).toBe(true);
      }),
    );
  });

  test.each([
    '',
    'x',
    '01900000-0000-7000-8000-00000000000',
    '01900000-0000-7000-8000-000000000000 ',
    '{01900000-0000-7000-8000-000000000000}',
    '01900000000070008000000000000000',
  ])('no uuid: %j', (text) => expect(isUuid(text)).toBe(false));
});
