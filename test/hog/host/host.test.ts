import { describe, expect, test } from '@jest/globals';
import { hostFunctions } from '../../../hog/host/index.ts';
import { compileJavaScript } from '../../../hog/javascript/index.ts';
import { parser, runSource } from '../vm/support.ts';

const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 17_4 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Mobile/15E148 Safari/604.1';
const CHROME =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/124.0.0.0 Safari/537.36';
const GOOGLEBOT = 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)';

const functions = hostFunctions({
  place: (address) =>
    address === '81.2.69.142'
      ? {
          $geoip_city_name: 'London',
          $geoip_country_name: 'United Kingdom',
          $geoip_country_code: 'GB',
          $geoip_continent_name: 'Europe',
          $geoip_continent_code: 'EU',
          $geoip_time_zone: 'Europe/London',
          $geoip_subdivision_1_code: 'ENG',
          $geoip_subdivision_1_name: 'England',
          $geoip_latitude: 51.5142,
          $geoip_longitude: -0.0931,
          $geoip_accuracy_radius: 10,
        }
      : undefined,
});

describe('functions of the host', () => {
  test.each<[string, unknown]>([
    [
      `parseUserAgent('${IPHONE}')`,
      {
        browser: 'Safari',
        browser_version: '17.4',
        os: 'iOS',
        os_version: '17.4',
        device: 'iPhone',
        device_type: 'Mobile',
      },
    ],
    [`parseUserAgent('${CHROME}').device_type`, 'Desktop'],
    [`parseUserAgent('${CHROME}').browser`, 'Chrome'],
    ["parseUserAgent('').browser", null],
    ['parseUserAgent(null).os', null],
    ['parseUserAgent([1]).device_type', null],
    [`isKnownBotUserAgent('${GOOGLEBOT}')`, true],
    [`isKnownBotUserAgent('${CHROME}')`, false],
    ['isKnownBotUserAgent(null)', false],
    ["isKnownBotIp('66.249.66.1')", true],
    ["isKnownBotIp('2001:4860:4801:10::1')", true],
    ["isKnownBotIp('::ffff:66.249.66.1')", true],
    ["isKnownBotIp('81.2.69.142')", false],
    ["isKnownBotIp('nothing')", false],
    ['isKnownBotIp(null)', false],
    [
      "cleanNullValues({'a': null, 'b': {'c': null, 'd': [1, null, {'e': null, 'f': {'g': null}}]}, 'h': 0})",
      { b: { d: [1, { e: null, f: { g: null } }] }, h: 0 },
    ],
    ["cleanNullValues([null, 1, 'x'])", [1, 'x']],
    ['cleanNullValues(null)', null],
    ["typeof(cleanNullValues({'at': toDate('2024-01-01')}).at)", 'date'],
    [
      "geoipLookup('81.2.69.142')",
      {
        city: { names: { en: 'London' } },
        continent: { code: 'EU', names: { en: 'Europe' } },
        country: { iso_code: 'GB', names: { en: 'United Kingdom' } },
        location: { latitude: 51.5142, longitude: -0.0931, time_zone: 'Europe/London', accuracy_radius: 10 },
        subdivisions: [{ iso_code: 'ENG', names: { en: 'England' } }],
      },
    ],
    ["geoipLookup('10.0.0.1')", null],
    ['geoipLookup(null)', null],
    ["geoipLookup('81.2.69.142').postal.code", null],
  ])('%s', async (expression, expected) => {
    const source = `return ${expression}`;
    expect(await runSource(source, { functions })).toMatchObject({ status: 'finished', result: expected });
    const javaScript = compileJavaScript(await parser.program(source)).run({}, { functions });
    expect(javaScript).toMatchObject({ status: 'finished', result: expected });
  });

  test('without a database no location is known', () => {
    expect(hostFunctions().geoipLookup?.('81.2.69.142')).toBeNull();
  });
});
