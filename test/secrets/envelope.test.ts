import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import {
  generateKey,
  open,
  parseKeyring,
  rewrap,
  SecretError,
  seal,
  sealedBy,
} from '../../secrets/envelope.ts';

const [one, two] = [generateKey('one'), generateKey('two')];
const ring = parseKeyring(one);
const CONTEXT = 'project 1/export 2/config';
const damaged = 'a sealed secret cannot be opened: it was changed, or it belongs to another row or field';

describe('sealing', () => {
  test('what was sealed opens, for any secret and context, and shows nothing of it', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (secret, context) => {
        const sealed = seal(ring, secret, context);
        expect(open(ring, sealed, context)).toBe(secret);
        expect(sealed).toMatch(/^slc1\.one\.[A-Za-z0-9_-]{80}\.[A-Za-z0-9_-]{38,}$/);
        if (secret.length > 7) expect(sealed).not.toContain(secret);
      }),
    );
  });

  test('twice gives two texts', () => {
    expect(seal(ring, 'x', CONTEXT)).not.toBe(seal(ring, 'x', CONTEXT));
  });

  test('in another context does not open', () => {
    const sealed = seal(ring, 'secret', CONTEXT);
    for (const context of ['', 'project 1/export 3/config', `${CONTEXT} `]) {
      expect(() => open(ring, sealed, context)).toThrow(new SecretError(damaged));
    }
  });

  test('every changed byte of every part is noticed', () => {
    const sealed = seal(ring, 'a secret of some length', CONTEXT);
    const parts = sealed.split('.') as [string, string, string, string];
    for (const index of [2, 3] as const) {
      const bytes = Buffer.from(parts[index], 'base64url');
      for (let at = 0; at < bytes.length; at += 1) {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] as number) ^ 0x01;
        const text = parts.with(index, changed.toString('base64url')).join('.');
        expect(() => open(ring, text, CONTEXT)).toThrow(new SecretError(damaged));
      }
      const cut = parts.with(index, bytes.subarray(0, -1).toString('base64url')).join('.');
      expect(() => open(ring, cut, CONTEXT)).toThrow(SecretError);
    }
  });

  test('the data key of one secret does not open another', () => {
    const [a, b] = [seal(ring, 'a', CONTEXT).split('.'), seal(ring, 'b', CONTEXT).split('.')];
    expect(() => open(ring, [...a.slice(0, 3), b[3]].join('.'), CONTEXT)).toThrow(new SecretError(damaged));
  });

  test.each([
    '',
    'x',
    'slc1.one.a',
    'slc2.one.a.b',
    'slc1..a.b',
    'slc1.one..b',
    'slc1.one.a.',
    'slc1.one.a.b.c',
  ])('a text of another form is refused: %j', (text) => {
    expect(() => open(ring, text, CONTEXT)).toThrow(
      new SecretError('a sealed secret is damaged: it does not have the expected form'),
    );
  });

  test('a part that is too short is refused', () => {
    expect(() => open(ring, 'slc1.one.AAAA.AAAA', CONTEXT)).toThrow(
      new SecretError('a sealed secret is damaged: it is too short'),
    );
  });
});

describe('rotation', () => {
  test('a new first key seals; the old one still opens; re-wrapping leaves the ciphertext alone', () => {
    const old = seal(ring, 'secret', CONTEXT);
    const both = parseKeyring(`${two},${one}`);
    expect(sealedBy(seal(both, 'x', CONTEXT))).toBe('two');
    expect(open(both, old, CONTEXT)).toBe('secret');
    const wrapped = rewrap(both, old);
    expect([sealedBy(old), sealedBy(wrapped)]).toEqual(['one', 'two']);
    expect(wrapped.split('.')[3]).toBe(old.split('.')[3]);
    expect(rewrap(both, wrapped)).toBe(wrapped);
    expect(open(parseKeyring(two), wrapped, CONTEXT)).toBe('secret');
  });

  test('without the key, its id is named', () => {
    const sealed = seal(ring, 'secret', CONTEXT);
    const missing = new SecretError(
      'a secret is sealed with the key "one", which SLUICE_ENCRYPTION_KEYS does not contain; add it back',
    );
    expect(() => open(parseKeyring(two), sealed, CONTEXT)).toThrow(missing);
    expect(() => rewrap(parseKeyring(two), sealed)).toThrow(missing);
  });

  test('a key that only shares the id opens nothing', () => {
    const sealed = seal(ring, 'secret', CONTEXT);
    expect(() => open(parseKeyring(generateKey('one')), sealed, CONTEXT)).toThrow(new SecretError(damaged));
  });
});

describe('keyrings', () => {
  const short = Buffer.alloc(31).toString('base64');
  test.each([
    ['', 'SLUICE_ENCRYPTION_KEYS, key 1: expected id:base64, the id made of letters, digits, - and _'],
    ['abc', 'SLUICE_ENCRYPTION_KEYS, key 1: expected id:base64, the id made of letters, digits, - and _'],
    [`${one},`, 'SLUICE_ENCRYPTION_KEYS, key 2: expected id:base64, the id made of letters, digits, - and _'],
    [
      `a b:${short}`,
      'SLUICE_ENCRYPTION_KEYS, key 1: expected id:base64, the id made of letters, digits, - and _',
    ],
    [`k:${short}`, 'SLUICE_ENCRYPTION_KEYS, key 1 (k): the key has 31 bytes, 32 are needed'],
    [`${one},${generateKey('one')}`, 'SLUICE_ENCRYPTION_KEYS, key 2: the id one appears twice'],
  ])('are refused with a sentence and without the key: %#', (text, message) => {
    expect(() => parseKeyring(text)).toThrow(new SecretError(message));
  });

  test('may have spaces', () => {
    expect([...parseKeyring(` ${one} , ${two} `).keys.keys()]).toEqual(['one', 'two']);
  });
});
