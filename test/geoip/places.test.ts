import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { addPlaces } from '../../capture/add-places.ts';
import { Notices } from '../../capture/parse/notices.ts';
import { flagPropertiesOf, PLACE_PROPERTIES, type Place, placeOf } from '../../geoip/database.ts';
import { locatableAddress } from '../../geoip/geoip.ts';
import { capturedEvent } from '../capture/support.ts';

describe('a record becomes a place', () => {
  interface Case {
    name: string;
    record: unknown;
    place: Place | null;
    flags: Record<string, string>;
  }
  const cases: Case[] = JSON.parse(readFileSync(path.join(import.meta.dirname, 'places.json'), 'utf8'));

  test.each(cases)('$name', ({ record, place, flags }) => {
    expect(placeOf(record)).toEqual(place ?? undefined);
    expect(flagPropertiesOf(placeOf(record))).toEqual(flags);
  });

  test('the first case has every property that there is', () => {
    expect(Object.keys(cases[0]?.place ?? {}).sort()).toEqual([...PLACE_PROPERTIES].sort());
  });
});

describe('addresses', () => {
  test.each([
    ['1.2.3.4', '1.2.3.4'],
    [' 1.2.3.4 ', '1.2.3.4'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['::FFFF:0102:0304', '1.2.3.4'],
    ['0:0:0:0:0:ffff:1.2.3.4', '1.2.3.4'],
    ['2001:218::1', '2001:218::1'],
    ['2001:0218:0000::0001', '2001:218::1'],
    ['2A02:D500::', '2a02:d500::'],
  ])('%s is %s', (given, address) => {
    expect(locatableAddress(given)).toBe(address);
  });

  test.each([
    ...['0.0.0.0', '10.1.2.3', '100.64.0.1', '127.0.0.1', '169.254.1.1', '172.31.255.255', '192.168.0.1'],
    ...['224.0.0.1', '240.0.0.1', '255.255.255.255', '::ffff:10.1.2.3', '::ffff:7f00:1'],
    ...['::', '::1', 'fc00::1', 'fd12::1', 'fe80::1', 'fe80::1%eth0', '2001:218::1%1', 'ff02::1'],
    ...['', ' ', 'garbage', '1.2.3', '1.2.3.4.5', '256.1.1.1', '01.2.3.4', '1.2.3.4:80', '[2001:218::1]'],
    ...['1.2.3.4, 5.6.7.8', '2001:218', '12345', 'x'.repeat(1_000_000), '1.2.3.4\u0000'],
    ...[undefined, null, 0, 16909060, true, {}, ['1.2.3.4']],
  ])('number %# of what is none is nowhere', (given) => {
    expect(locatableAddress(given)).toBeUndefined();
  });
});

describe('events', () => {
  const LONDON = { $geoip_city_name: 'London', $geoip_latitude: 51.5142 };
  const enrich = async (properties: Record<string, unknown>) => {
    const place = (address: unknown) => (locatableAddress(address) === '81.2.69.142' ? LONDON : undefined);
    const [event] = await addPlaces(place)(
      { id: 1 },
      [capturedEvent({ properties: { ...properties } })],
      new Notices(),
    );
    return event?.properties;
  };

  test.each<[string, Record<string, unknown>]>([
    ['an address that is known', { $ip: '81.2.69.142', a: 1 }],
    ['an address in the other spelling', { $ip: '::ffff:81.2.69.142' }],
    ['$geoip_disable that is false', { $ip: '81.2.69.142', $geoip_disable: false }],
    ['other properties of this kind', { $ip: '81.2.69.142', $geoip_other: 'x', $geoip_city_name: null }],
  ])('%s: the place is added', async (_name, properties) => {
    expect(await enrich(properties)).toEqual({ ...properties, ...LONDON });
  });

  test.each<[string, Record<string, unknown>]>([
    ['no address', { a: 1 }],
    ['a private address', { $ip: '192.168.1.1' }],
    ['an address that is not known', { $ip: '1.1.1.1' }],
    ['garbage', { $ip: { a: '81.2.69.142' } }],
    ['$geoip_disable', { $ip: '81.2.69.142', $geoip_disable: true }],
    ['$geoip_disable as a text', { $ip: '81.2.69.142', $geoip_disable: 'yes' }],
    ['a place of its own', { $ip: '81.2.69.142', $geoip_city_name: 'Elsewhere' }],
    ['half a place of its own', { $ip: '81.2.69.142', $geoip_latitude: 0 }],
  ])('%s: nothing is added', async (_name, properties) => {
    expect(await enrich(properties)).toEqual(properties);
  });
});
