import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from '@jest/globals';
import { placeOf, readGeoipDatabase } from '../../geoip/database.ts';
import { type Geoip, openGeoip } from '../../geoip/geoip.ts';
import { eventually } from '../support/eventually.ts';

const FIXTURE = path.join(import.meta.dirname, '../fixtures/geoip/GeoLite2-City-Test.mmdb');
const whole = readFileSync(FIXTURE);
const METADATA = Buffer.from('abcdef4d61784d696e642e636f6d', 'hex');

const LONDON = {
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
};
const JAPAN = {
  $geoip_country_name: 'Japan',
  $geoip_country_code: 'JP',
  $geoip_continent_name: 'Asia',
  $geoip_continent_code: 'AS',
  $geoip_time_zone: 'Asia/Tokyo',
  $geoip_latitude: 35.68536,
  $geoip_longitude: 139.75309,
  $geoip_accuracy_radius: 100,
};

let folder: string;
let file: string;
let lines: { level: 'info' | 'warn'; text: string }[];
let open: Geoip | undefined;
const logger = {
  info: (_fields: unknown, text: string) => void lines.push({ level: 'info', text }),
  warn: (_fields: unknown, text: string) => void lines.push({ level: 'warn', text }),
} as unknown as NonNullable<Parameters<typeof openGeoip>[0]['logger']>;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'sluice-geoip-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach(() => {
  lines = [];
  file = path.join(folder, `${Math.random()}.mmdb`);
});
afterEach(() => open?.close());

async function opened(bytes: Buffer = whole, lookEvery?: number): Promise<Geoip> {
  writeFileSync(file, bytes);
  open = await openGeoip({ file, logger, ...(lookEvery ? { lookEvery } : {}) });
  lines = [];
  return open;
}

/** As tools that fetch databases do it. */
function replace(bytes: Buffer): void {
  writeFileSync(`${file}.new`, bytes);
  renameSync(`${file}.new`, file);
}

/** The database with another name in the place of one of the same length. */
function renamed(from: string, to: string): Buffer {
  const bytes = Buffer.from(whole);
  for (let at = bytes.indexOf(from); at !== -1; at = bytes.indexOf(from, at + 1)) bytes.write(to, at);
  return bytes;
}

describe('a database', () => {
  test.each([
    ['81.2.69.142', LONDON],
    ['::ffff:81.2.69.142', LONDON],
    ['2001:218::1', JAPAN],
    ['2001:218:ffff:ffff:ffff:ffff:ffff:ffff', JAPAN],
    ['2a02:d500::1', expect.not.objectContaining({ $geoip_country_code: expect.anything() })],
    [
      '2.125.160.216',
      expect.objectContaining({
        $geoip_postal_code: 'OX1',
        $geoip_subdivision_2_code: 'WBK',
        $geoip_subdivision_2_name: 'West Berkshire',
      }),
    ],
    ['1.1.1.1', undefined],
    ['2001:4860::1', undefined],
    ['10.0.0.1', undefined],
    ['garbage', undefined],
    [undefined, undefined],
  ])('knows of %s', async (address, place) => {
    const geoip = await opened();
    // Twice: as it was found, and as it is remembered.
    expect([geoip.place(address), geoip.place(address)]).toEqual([place, place]);
  });

  test('answers for flags with seven properties, or with what there is of them', async () => {
    const geoip = await opened();
    expect(geoip.flagProperties('2.125.160.216')).toEqual({
      $geoip_city_name: 'Boxford',
      $geoip_country_name: 'United Kingdom',
      $geoip_country_code: 'GB',
      $geoip_continent_name: 'Europe',
      $geoip_continent_code: 'EU',
      $geoip_postal_code: 'OX1',
      $geoip_time_zone: 'Europe/London',
    });
    expect(geoip.flagProperties('127.0.0.1')).toEqual({});
  });

  test('for IPv4 alone does not take the beginning of an IPv6 address for one', () => {
    // A tree of one node: whatever begins with the bit 1 has the record.
    const bytes = ipv4Database();
    const database = readGeoipDatabase(bytes);
    expect(placeOf(database.find('200.1.1.1'))).toEqual({ $geoip_country_code: 'JP' });
    expect(database.find('64.1.1.1')).toBeNull();
    expect(database.find('c801:101::1')).toBeNull();
  });
});

/** A database as small as one can be: half of the addresses are in Japan. */
function ipv4Database(type = 'Test-Country', version = 2): Buffer {
  const text = (value: string) => Buffer.concat([Buffer.of(0x40 | value.length), Buffer.from(value)]);
  const map = (...entries: [string, Buffer][]) =>
    Buffer.concat([
      Buffer.of(0xe0 | entries.length),
      ...entries.flatMap(([name, value]) => [text(name), value]),
    ]);
  const uint16 = (value: number) => Buffer.of(0xa1, value);
  const uint32 = (value: number) => Buffer.of(0xc1, value);
  const record = map(['country', map(['iso_code', text('JP')])]);
  return Buffer.concat([
    // Left: nothing (the number of nodes). Right: the first record, 16 after that.
    Buffer.of(0, 0, 1, 0, 0, 17),
    Buffer.alloc(16),
    record,
    METADATA,
    map(
      ['binary_format_major_version', uint16(version)],
      ['build_epoch', uint32(1)],
      ['database_type', text(type)],
      ['ip_version', uint16(4)],
      ['node_count', uint32(1)],
      ['record_size', uint16(24)],
    ),
  ]);
}

describe('what is no database', () => {
  const damagedTree = Buffer.from(whole);
  // Every record of the tree points far behind the end.
  damagedTree.fill(0xff, 0, 7_000);
  const other = ipv4Database('Test-ASN');
  other.write('xxxxxxxx', other.indexOf('iso_code'));

  test.each<[string, Buffer, string]>([
    ['an empty file', Buffer.alloc(0), 'is not a complete MaxMind database (.mmdb)'],
    ['a text', Buffer.from('<html>404</html>'), 'is not a complete MaxMind database (.mmdb)'],
    [
      'the first half of one',
      whole.subarray(0, whole.length / 2),
      'is not a complete MaxMind database (.mmdb)',
    ],
    ['its end alone', whole.subarray(-400), 'is damaged'],
    ['one without its beginning', whole.subarray(700), 'is damaged'],
    ['one with a broken tree', damagedTree, 'is damaged'],
    ['a newer form', ipv4Database('Test', 3), 'has an unknown format: version 3 for IPv4'],
    [
      'one about something else',
      other,
      'is a Test-ASN database, which has no locations; use a City or Country database',
    ],
  ])('%s is refused with the name of the setting and the reason', async (_name, bytes, reason) => {
    await expect(opened(bytes)).rejects.toThrow(`SLUICE_GEOIP_DATABASE: ${file} ${reason}`);
  });

  test('a file that is not there, a folder', async () => {
    await expect(openGeoip({ file })).rejects.toThrow(
      `SLUICE_GEOIP_DATABASE: the file ${file} cannot be read (ENOENT: no such file or directory`,
    );
    await expect(openGeoip({ file: folder })).rejects.toThrow(
      `SLUICE_GEOIP_DATABASE: ${folder} is not a file.`,
    );
  });
});

describe('a file that is replaced', () => {
  test('is read again by itself, and answers anew for addresses that were asked before', async () => {
    const geoip = await opened(whole, 20);
    expect(geoip.place('81.2.69.142')).toEqual(LONDON);
    replace(renamed('London', 'Lisbon'));
    await eventually(async () => geoip.place('81.2.69.142')?.$geoip_city_name === 'Lisbon');
    expect(lines).toEqual([{ level: 'info', text: 'the GeoIP database was read' }]);
  });

  test('by a broken one keeps the old one and is complained about once, until a good one comes', async () => {
    const geoip = await opened();
    for (const bytes of [Buffer.from('broken'), whole.subarray(0, 9_000), Buffer.alloc(0)]) {
      replace(bytes);
      lines = [];
      for (let times = 0; times < 3; times += 1) await geoip.refresh();
      expect(lines).toEqual([
        {
          level: 'warn',
          text: `SLUICE_GEOIP_DATABASE: ${file} is not a complete MaxMind database (.mmdb). The database read before stays in use.`,
        },
      ]);
      expect(geoip.place('81.2.69.142')).toEqual(LONDON);
    }
    replace(renamed('London', 'Lisbon'));
    await geoip.refresh();
    expect(geoip.place('81.2.69.142')).toMatchObject({ $geoip_city_name: 'Lisbon' });
  });

  test('in place, slowly, is taken when it is whole', async () => {
    const geoip = await opened();
    const next = renamed('London', 'Lisbon');
    writeFileSync(file, next.subarray(0, 5_000));
    for (let at = 5_000; at < next.length; at += 5_000) {
      await geoip.refresh();
      expect(geoip.place('81.2.69.142')).toEqual(LONDON);
      appendFileSync(file, next.subarray(at, at + 5_000));
    }
    await geoip.refresh();
    expect(geoip.place('81.2.69.142')?.$geoip_city_name).toBe('Lisbon');
  });

  test('by nothing, then by a folder, then by a new one', async () => {
    const geoip = await opened();
    rmSync(file);
    for (let times = 0; times < 3; times += 1) await geoip.refresh();
    mkdirSync(file);
    await geoip.refresh();
    expect(lines.map(({ level }) => level)).toEqual(['warn']);
    expect(lines[0]?.text).toContain('cannot be read (ENOENT');
    expect(geoip.place('81.2.69.142')).toEqual(LONDON);
    rmSync(file, { recursive: true });
    replace(renamed('London', 'Lisbon'));
    await geoip.refresh();
    expect(geoip.place('81.2.69.142')?.$geoip_city_name).toBe('Lisbon');
  });

  test('is not read again when nothing happened to it', async () => {
    const geoip = await opened();
    await Promise.all([geoip.refresh(), geoip.refresh()]);
    await geoip.refresh();
    expect(lines).toEqual([]);
    chmodSync(file, 0o600);
    await geoip.refresh();
    expect(lines).toHaveLength(1);
  });

  test('with damage that shows only later costs the places, never an event, and one line', async () => {
    const bytes = Buffer.from(whole);
    // The end of the tree, which the first networks do not lead through.
    bytes.fill(0xff, 9_800, 10_255);
    const addresses = Array.from(
      { length: 512 },
      (_, index) => `2a02:${(0xe000 + index * 16).toString(16)}::1`,
    );
    const intact = (await opened()).place;
    const expected = addresses.map(intact);
    const damaged = (await opened(bytes)).place;
    const places = addresses.map(damaged);
    const lost = places.filter((place, index) => !place && expected[index]).length;
    expect([lost > 0, places.filter(Boolean).length > 100]).toEqual([true, true]);
    expect(places).toEqual(expected.map((place, index) => places[index] && place));
    expect(lines).toEqual([{ level: 'warn', text: `SLUICE_GEOIP_DATABASE: ${file} is damaged.` }]);
  });
});
