import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { addPlaces } from '../../capture/add-places.ts';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import type { TransformEvents } from '../../capture/transform.ts';
import { type Geoip, openGeoip } from '../../geoip/geoip.ts';
import { apiForFile, type Tenant } from '../support/api.ts';

const FIXTURE = path.join(import.meta.dirname, '../fixtures/geoip/GeoLite2-City-Test.mmdb');
let geoip: Geoip;
let transform: TransformEvents;
const api = apiForFile({}, { transform: (...given) => transform(...given) });
let anna: Tenant;
let shy: Tenant;

beforeAll(async () => {
  geoip = await openGeoip({ file: FIXTURE });
  transform = addPlaces(geoip.place);
  [anna, shy] = [await api.createTenant('Anna'), await api.createTenant('Shy')];
  const changed = await api.request(shy, 'PATCH', `/api/projects/${shy.projectId}/`, { anonymize_ips: true });
  expect(changed.statusCode).toBe(200);
});
afterAll(() => geoip.close());

async function capture(
  tenant: Tenant,
  properties: Record<string, unknown>[],
  remoteAddress: string,
): Promise<Record<string, unknown>[]> {
  const uuids = properties.map(
    (_, index) => `0197a3c0-0000-7000-8000-${String(serial + index).padStart(12, '0')}`,
  );
  serial += properties.length;
  const batch = properties.map((one, index) => ({
    uuid: uuids[index],
    event: `event ${index}`,
    distinct_id: 'u',
    properties: one,
  }));
  const answer = await api.app.inject({
    method: 'POST',
    url: '/batch/',
    payload: { api_key: tenant.projectToken, batch },
    remoteAddress,
  });
  expect([answer.statusCode, answer.body]).toEqual([200, '{"status":"Ok"}']);
  const { rows } = await api.pool.query(
    'select properties from events where project_id = $1 and uuid = any($2) order by event',
    [tenant.projectId, uuids],
  );
  return rows.map((row) => row.properties);
}
let serial = 1;

describe('places of events', () => {
  test('follow from where the request came from, or from the $ip that the event brings', async () => {
    const stored = await capture(
      anna,
      [{}, { $ip: '2001:218::1' }, { $ip: '10.0.0.1' }, { $geoip_disable: true }, { $ip: 'garbage\u0000' }],
      '::ffff:81.2.69.142',
    );
    expect(
      stored.map(({ $ip, $geoip_city_name, $geoip_country_code }) => [
        $ip,
        $geoip_city_name,
        $geoip_country_code,
      ]),
    ).toEqual([
      ['81.2.69.142', 'London', 'GB'],
      ['2001:218::1', undefined, 'JP'],
      ['10.0.0.1', undefined, undefined],
      ['81.2.69.142', undefined, undefined],
      ['garbage\ufffd', undefined, undefined],
    ]);
    expect(stored[0]).toEqual({ $ip: '81.2.69.142', ...geoip.place('81.2.69.142') });
  });

  test('are known of projects whose addresses are not', async () => {
    const [from, own] = await capture(shy, [{}, { $ip: '2001:218::1' }], '81.2.69.142');
    expect(from).toEqual(geoip.place('81.2.69.142'));
    expect(own).toEqual(geoip.place('2001:218::1'));
  });
});

describe('a transformation', () => {
  const using = async <T>(other: TransformEvents, work: () => Promise<T>): Promise<T> => {
    const before = transform;
    transform = other;
    try {
      return await work();
    } finally {
      transform = before;
    }
  };

  test('is told the project, may take its time, change events and leave some out', async () => {
    const told: number[] = [];
    const slow: TransformEvents = async ({ id }, events) => {
      told.push(id);
      await pause(5);
      const kept = events.filter((event) => event.properties.keep);
      for (const event of kept) event.properties = { changed: true };
      return kept;
    };
    const stored = await using(slow, () => capture(anna, [{ keep: 1 }, {}, { keep: 1 }], '81.2.69.142'));
    expect(stored).toEqual([{ changed: true }, { changed: true }]);
    expect(told).toEqual([anna.projectId]);
  });

  test('that leaves out everything is an answer as any other', async () => {
    expect(
      await using(
        () => [],
        () => capture(anna, [{}, {}], '81.2.69.142'),
      ),
    ).toEqual([]);
  });

  test('sees the address of a project that keeps none', async () => {
    const seen: unknown[] = [];
    const look: TransformEvents = (_projectId, events: CapturedEvent[]) => {
      seen.push(...events.map((event) => event.properties.$ip));
      return events;
    };
    expect(await using(look, () => capture(shy, [{}], '81.2.69.142'))).toEqual([{}]);
    expect(seen).toEqual(['81.2.69.142']);
  });
});
