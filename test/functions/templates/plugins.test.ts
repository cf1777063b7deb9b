import { describe, expect, test } from '@jest/globals';
import { findTemplate } from '../../../functions/templates/index.ts';
import { PAID, trialsForFile } from './trial.ts';

const trials = trialsForFile();

/** The properties of what a transformation returns, or null if it drops the event. */
async function changed(id: string, inputs: object, properties: object, event: object = {}): Promise<unknown> {
  const tried = await trials.run(id, { inputs: { ...inputs }, event: { properties, ...event } });
  expect(tried.errors).toEqual([]);
  return (tried.result as { properties: object } | null)?.properties ?? null;
}

describe('the language of a URL', () => {
  const id = 'plugin-language-url-splitter-app';
  const OLDER = { pattern: '^/([a-z]{2})(?=/|#|\\?|$)', replacePattern: '^(/[a-z]{2})(/|(?=/|#|\\?|$))' };

  test.each([
    ['its own patterns', {}],
    ['the patterns of the older plugin', OLDER],
  ])('is found with %s', async (_of, inputs) => {
    expect(await changed(id, inputs, { $pathname: '/de/cart' })).toEqual({
      locale: 'de',
      $pathname: '/cart',
    });
    expect(await changed(id, inputs, { $pathname: '/de' })).toEqual({ locale: 'de', $pathname: '/' });
    expect(await changed(id, inputs, { $pathname: '/deal/de' })).toEqual({ $pathname: '/deal/de' });
    expect(await changed(id, inputs, { $pathname: 5 })).toEqual({ $pathname: 5 });
  });

  test('is found where the pattern looks for it', async () => {
    const inputs = {
      pattern: 'lang-([a-z]+)',
      matchGroup: '0',
      property: 'tag',
      replacePattern: '/lang-[a-z]+',
    };
    expect(
      await changed(id, { ...inputs, replaceKey: 'path', replaceValue: '' }, { $pathname: '/a/lang-de/b' }),
    ).toEqual({ $pathname: '/a/lang-de/b', tag: 'lang-de', path: '/a/b' });
    expect(await changed(id, { replacePattern: '' }, { $pathname: '/de/x' })).toEqual({
      $pathname: '/de/x',
      locale: 'de',
    });
    const tried = await trials.run(id, {
      inputs: { matchGroup: '2' },
      event: { properties: { $pathname: '/de' } },
    });
    expect(tried.errors.join()).toContain('The match group must be 0 or 1.');
  });
});

describe('parameters of a URL', () => {
  const id = 'plugin-posthog-app-url-parameters-to-event-properties';
  const $current_url = 'https://shop.test/?plan=pro+1%26&Ref=a&ref=b&empty=&flag#x=1&plan=no';
  const added = async (inputs: object) => {
    const { $current_url: _url, ...more } = (await changed(id, inputs, { $current_url })) as Record<
      string,
      unknown
    >;
    return more;
  };

  test('become properties', async () => {
    expect(await added({ parameters: 'plan, ref, missing,flag' })).toEqual({
      plan: 'pro 1&',
      ref: 'b',
      flag: '',
    });
    expect(await added({ parameters: 'REF', ignoreCase: 'true' })).toEqual({ REF: '["a","b"]' });
    expect(await added({ parameters: 'plan', alwaysJson: 'true' })).toEqual({ plan: '["pro 1&"]' });
    expect(await added({ parameters: '' })).toEqual({});
  });

  test('have names as they are told to, on the event and the person', async () => {
    const inputs = { parameters: 'plan', prefix: 'p_', suffix: '_s', customNames: { ref: 'referrer_id' } };
    expect(await added(inputs)).toEqual({ p_plan_s: 'pro 1&', referrer_id: 'b' });
    const person = { setAsUserProperties: 'true', setAsInitialUserProperties: 'true' };
    expect(await added({ parameters: 'plan', ...person })).toEqual({
      ...{ plan: 'pro 1&', $set: { plan: 'pro 1&' }, $set_once: { initial_plan: 'pro 1&' } },
    });
  });

  test('are none where there is no URL', async () => {
    for (const properties of [
      {},
      { $current_url: null },
      { $current_url: 'no url' },
      { $current_url: '%' },
    ]) {
      expect(await changed(id, { parameters: 'plan' }, properties)).toEqual(properties);
    }
    expect(await changed(id, { parameters: 'a' }, { $current_url: '/?a=%zz' })).toMatchObject({ a: '%zz' });
  });
});

describe('filtering out', () => {
  const id = 'plugin-posthog-filter-out-plugin';
  const properties = { plan: 'pro', amount: 5, is_new: true };
  const isKept = async (conditions: unknown, more: object = {}) =>
    (await changed(id, { filters: JSON.stringify(conditions), ...more }, properties)) !== null;
  const one = (property: string, type: string, operator: string, value: unknown) => ({
    ...{ property, type, operator, value },
  });

  test.each([
    ['plan', 'string', 'is', 'pro', true],
    ['plan', 'string', 'is_not', 'pro', false],
    ['plan', 'string', 'contains', 'r', true],
    ['plan', 'string', 'not_contains', 'r', false],
    ['plan', 'string', 'regex', '^p', true],
    ['plan', 'string', 'not_regex', '^p', false],
    ['amount', 'number', 'gt', 4, true],
    ['amount', 'number', 'lt', 4, false],
    ['amount', 'number', 'gte', 5, true],
    ['amount', 'number', 'lte', 4, false],
    ['amount', 'number', 'eq', 5, true],
    ['amount', 'number', 'neq', 5, false],
    ['plan', 'number', 'gt', 4, false],
    ['is_new', 'boolean', 'is', true, true],
    ['is_new', 'boolean', 'is_not', true, false],
  ])('%s %s %s %j keeps the event: %j', async (property, type, operator, value, expected) => {
    expect(await isKept([one(property, type, operator, value)])).toBe(expected);
  });

  test('needs all conditions of one group', async () => {
    const good = one('plan', 'string', 'is', 'pro');
    const bad = one('amount', 'number', 'gt', 9);
    expect(await isKept([good, bad])).toBe(false);
    expect(await isKept([[good], [bad]])).toBe(true);
    expect(await isKept([[good, bad], [bad]])).toBe(false);
    expect(await isKept([])).toBe(true);
  });

  test('decides on what is missing, and on names', async () => {
    const condition = [one('missing', 'string', 'is', 'x')];
    expect(await isKept(condition)).toBe(false);
    expect(await isKept(condition, { keepUndefinedProperties: 'Yes' })).toBe(true);
    expect(await changed(id, { eventsToDrop: 'a, order paid' }, properties)).toBeNull();
    expect(await changed(id, { eventsToDrop: 'a' }, properties)).toEqual(properties);
  });

  test('names conditions that do not exist', async () => {
    const filters = JSON.stringify([one('plan', 'string', 'like', 'x')]);
    const tried = await trials.run(id, { inputs: { filters }, event: { properties } });
    expect(tried.errors.join()).toContain('A condition cannot have the type string with the operator like.');
  });
});

test('the older GeoIP is GeoIP', async () => {
  expect(await changed('plugin-posthog-plugin-geoip', {}, PAID.properties)).toMatchObject({
    $geoip_country_code: 'GB',
  });
  expect(findTemplate('plugin-posthog-plugin-geoip')?.hog).toBe(findTemplate('template-geoip')?.hog);
});
