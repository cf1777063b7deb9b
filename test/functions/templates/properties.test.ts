import { createHash } from 'node:crypto';
import { describe, expect, test } from '@jest/globals';
import { trialsForFile } from './trial.ts';

const trials = trialsForFile();
const sha = (text: string) => createHash('sha256').update(text).digest('hex');

interface Changed {
  distinct_id: string;
  properties: Record<string, unknown>;
}

async function changed(id: string, properties: object, inputs = {}): Promise<Changed> {
  const tried = await trials.run(id, { inputs, event: { properties } });
  expect([tried.status, tried.errors]).toEqual(['success', []]);
  return tried.result as Changed;
}

describe('hashing', () => {
  const salt = 'the-salt';

  test('hashes values at paths, with a salt that no log has', async () => {
    const given = {
      email: 'a@b.c',
      user: { phone: 12, left: 1 },
      'dotted.name': 'x',
      gone: null,
      other: 'y',
    };
    const privateFields = 'email, user.phone, dotted.name, gone, missing.deep, other.deep';
    const inputs = { privateFields, salt };
    const { properties, distinct_id } = await changed('template-hash-properties', given, inputs);
    expect(distinct_id).toBe('ada');
    expect(properties).toEqual({
      email: sha('a@b.cthe-salt'),
      user: { phone: sha('12the-salt'), left: 1 },
      'dotted.name': sha('xthe-salt'),
      ...{ gone: null, other: 'y' },
    });
    const tried = await trials.run('template-hash-properties', { inputs });
    expect(JSON.stringify(tried)).not.toContain('the-salt');
  });

  test('hashes the distinct_id and properties of persons', async () => {
    const given = { $set: { email: 'a@b.c', plan: 'x' }, $set_once: { name: 'Ada' } };
    const hashed = {
      $set: { email: sha('a@b.cthe-salt'), plan: 'x' },
      $set_once: { name: sha('Adathe-salt') },
    };
    expect(await changed('template-hash-properties', given, { salt })).toMatchObject({
      ...{ distinct_id: sha('adathe-salt'), properties: hashed },
    });
    const inputs = { salt, includeSetProperties: false, privateFields: 'email' };
    const own = await changed('template-hash-properties', { ...given, email: 'x' }, inputs);
    expect(own).toMatchObject({ distinct_id: 'ada', properties: { ...given, email: sha('xthe-salt') } });
  });

  test('personal data is hashed with the distinct_id when it is asked to', async () => {
    const inputs = { propertiesToHash: 'a', hashDistinctId: true };
    expect((await changed('template-pii-hashing', {}, inputs)).distinct_id).toBe(sha('ada'));
  });

  test('personal data is hashed in $set too', async () => {
    const given = { email: 'a@b.c', $set: { email: 'a@b.c', plan: 'x' }, $set_once: { phone: '1' } };
    expect((await changed('template-pii-hashing', given)).properties).toEqual({
      email: sha('a@b.c'),
      $set: { email: sha('a@b.c'), plan: 'x' },
      $set_once: { phone: sha('1') },
    });
  });
});

test('named properties are removed', async () => {
  const given = { a: 1, b: { c: 2, d: 3 }, 'e.f': 4, g: 'text', h: null };
  const inputs = { propertiesToFilter: ' a, b.c,e.f, g.x, missing.x,, h.x' };
  expect((await changed('template-filter-properties', given, inputs)).properties).toEqual({
    ...{ b: { d: 3 }, g: 'text', h: null },
  });
});

describe('masking of URLs', () => {
  test.each([
    [
      'https://a.test/?email=x&b=1&Password=y#top',
      'https://a.test/?email=[REDACTED]&b=1&Password=[REDACTED]#top',
    ],
    ['https://a.test/?%65mail=x%26y', 'https://a.test/?%65mail=[REDACTED]'],
    ['https://a.test/#/in?token=1&c=2', 'https://a.test/#/in?token=[REDACTED]&c=2'],
    ['/?email', '/?email=[REDACTED]'],
    ['https://a.test/email=x', 'https://a.test/email=x'],
    ['?', ''],
  ])('%s becomes %s', async (url, masked) => {
    const given = { $current_url: url, other: url, $set: { $referrer: url } };
    expect((await changed('template-url-masking', given)).properties).toEqual({
      ...{ $current_url: masked, other: url, $set: { $referrer: masked } },
    });
  });

  test('removes parameters when there is no mask', async () => {
    const inputs = { urlProperties: { link: 'q, r' }, maskWith: '' };
    const masked = async (link: unknown) =>
      (await changed('template-url-masking', { link }, inputs)).properties;
    expect(await masked('https://a.test/?q=1&b=2&r=3#x')).toEqual({ link: 'https://a.test/?b=2#x' });
    expect(await masked('https://a.test/?q=1')).toEqual({ link: 'https://a.test/' });
    expect(await masked(5)).toEqual({ link: 5 });
  });
});

describe('normalization of URLs', () => {
  const normal = async (url: unknown, inputs = {}) =>
    (await changed('template-url-normalization', { $current_url: url }, inputs)).properties.$current_url;

  test.each([
    ['HTTPS://Shop.TEST/Cart/?A=B#Top', 'https://shop.test/Cart/'],
    ['https://shop.test', 'https://shop.test'],
    ['https://shop.test?x=/Y/', 'https://shop.test'],
    [
      'https://shop.test/order/AB12/018f0000-0000-7000-8000-000000000001/x1/12',
      'https://shop.test/order/:id/:id/x1/12',
    ],
    ['/a/ABC/', '/a/:id/'],
    ['/', '/'],
  ])('%s becomes %s', async (url, expected) => {
    expect(await normal(url)).toBe(expected);
  });

  test('does what it is asked to', async () => {
    const kept = { removeHash: false, removeQueryString: false };
    expect(await normal('https://shop.test/a?id=ABC1&b=c&d#/in/XYZ9?e=f', kept)).toBe(
      'https://shop.test/a?id=:id&b=c&d#/in/:id',
    );
    const own = { regex: '^[0-9]+$', replaceWith: '{event.event}', lowercase: true, trailingSlash: true };
    expect(await normal('https://shop.test/Cart/12//', own)).toBe('https://shop.test/cart/order paid');
    expect(await normal(7)).toBe(7);
  });

  test('reaches properties of persons', async () => {
    const inputs = { urlProperties: 'link' };
    const given = { $set: { link: 'https://a.test/ABC1' }, $set_once: { link: '/x?y' } };
    expect((await changed('template-url-normalization', given, inputs)).properties).toEqual({
      ...{ $set: { link: 'https://a.test/:id' }, $set_once: { link: '/x' } },
    });
  });
});
