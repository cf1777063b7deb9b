import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { PRODUCTS } from '../../products.ts';
import { allScopes, type Scope, scopeAllows, scopeObjects } from '../../tenancy/scopes.ts';
import { SLUG_LENGTH, slugCandidate, slugify } from '../../tenancy/slug.ts';
import {
  hashToken,
  maskToken,
  newKeyId,
  newPersonalApiKey,
  newProjectSecret,
  newProjectToken,
  randomLetters,
} from '../../tenancy/tokens.ts';

describe('slugs', () => {
  test.each([
    ['Acme Inc.', 'acme-inc'],
    ['Café Größe & Co', 'cafe-groe-co'],
    ['  --Hello__World--  ', 'hello__world'],
    ['a  -  b', 'a-b'],
    ['ﬁne ①', 'fine-1'],
    ['日本', ''],
    ['___', ''],
    ['x'.repeat(60), 'x'.repeat(48)],
    [`${'x'.repeat(47)} y`, 'x'.repeat(47)],
    ['snake_case', 'snake_case'],
    ["Robert'); drop table", 'robert-drop-table'],
  ])('%j → %j', (name, slug) => expect(slugify(name)).toBe(slug));

  test('are short, plain and without edges for any name, and slugs of slugs are themselves', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })), (name) => {
        const slug = slugify(name);
        expect(slug).toMatch(/^([a-z0-9]([a-z0-9_-]*[a-z0-9])?)?$/);
        expect(slug.length).toBeLessThanOrEqual(SLUG_LENGTH);
        expect(slugify(slug)).toBe(slug);
      }),
    );
  });

  test('a candidate is never empty or too long; the first is plain, the others end in four letters', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.nat({ max: 9 }), (name, attempt) => {
        const candidate = slugCandidate(name, attempt, (length) => 'q'.repeat(length));
        const plain = slugify(name) || 'organization';
        expect(candidate).toBe(attempt === 0 ? plain : `${plain.slice(0, 43)}-qqqq`);
        expect(candidate.length).toBeLessThanOrEqual(SLUG_LENGTH);
      }),
    );
  });
});

describe('scopes', () => {
  const scopes = scopeObjects(PRODUCTS).flatMap((one) => [`${one}:read`, `${one}:write`] as Scope[]);
  const isScope = (text: string) => allScopes(PRODUCTS).includes(text);
  const project = (scope: string) => scope.replace(/^team:/, 'project:');

  test('are the listed ones and *', () => {
    for (const scope of [...scopes, '*']) expect(isScope(scope)).toBe(true);
    for (const text of [
      '',
      'user',
      'user:',
      'user:admin',
      ':read',
      'nothing:read',
      '*:read',
      'USER:read',
      'user:read ',
      'constructor',
      '__proto__:read',
    ]) {
      expect([text, isScope(text)]).toEqual([text, false]);
    }
  });

  test('allow themselves, reading by writing, everything by *, and nothing else', () => {
    fc.assert(
      fc.property(fc.subarray([...scopes, '*']), fc.constantFrom(...scopes), (granted, required) => {
        const enough = new Set([project(required), project(required).replace(':read', ':write')]);
        const expected = granted.some((one) => one === '*' || enough.has(project(one)));
        expect(scopeAllows(granted, required)).toBe(expected);
      }),
      { numRuns: 500 },
    );
    expect(scopeAllows([], 'user:read')).toBe(false);
    expect(scopeAllows(['team:write'], 'project:read')).toBe(true);
    expect(scopeAllows(['project:read'], 'team:read')).toBe(true);
    expect(scopeAllows(['user:read'], 'user:write')).toBe(false);
  });
});

describe('tokens', () => {
  test.each([
    ['phx', newPersonalApiKey],
    ['phc', newProjectToken],
    ['phs', newProjectSecret],
  ])('%s tokens have 256 random bits', (prefix, make) => {
    const made = Array.from({ length: 200 }, make);
    expect(new Set(made).size).toBe(200);
    for (const token of made) expect(token).toMatch(new RegExp(`^${prefix}_[0-9A-Za-z]{38,43}$`));
    expect(Math.max(...made.map((token) => token.length))).toBe(47);
  });

  test('are hashed as the API promises', () => {
    expect(hashToken('abc')).toBe('sha256$ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad');
  });

  test('show eight characters of themselves', () =>
    expect(maskToken('phx_abcdefghijkl')).toBe('phx_...ijkl'));

  test('letters come from the alphabet, all of them', () => {
    expect(randomLetters(64)).toMatch(/^[a-z0-9]{64}$/);
    expect(new Set(randomLetters(5000)).size).toBe(36);
    expect(new Set(Array.from({ length: 200 }, newKeyId)).size).toBe(200);
  });
});
