import { expect, test } from '@jest/globals';
import { compareZones } from '../../queries/reads/zones.ts';
import { ZONE_DATA_VERSION } from '../../values/zones.ts';
import { databaseForFile } from '../support/database.ts';

const database = databaseForFile();

const inZones = (...zones: string[]) =>
  database.pool
    .query(
      `insert into organizations (id, name, slug) values (gen_random_uuid(), 'Zones', gen_random_uuid()::text)`,
    )
    .then(() =>
      database.pool.query(
        `insert into projects (uuid, organization_id, name, api_token, timezone)
       select gen_random_uuid(), (select id from organizations limit 1), zone, 'phc_' || gen_random_uuid(), zone from unnest($1::text[]) as zone`,
        [zones],
      ),
    );

test('doctor compares the zones of projects in Postgres with ours', async () => {
  await inZones('Asia/Tokyo', 'Europe/Berlin', 'asia/tokyo');
  expect(await compareZones(database.pool)).toEqual({
    ...{ check: 'time zones', ok: true },
    sentence: `Postgres knows the 2 time zones of projects as Sluice does (${ZONE_DATA_VERSION}).`,
  });
  // A database whose zone data say something else about a zone, and one that lacks it.
  const altered = {
    query: async (text: string, values?: unknown[]) => {
      const found = await database.pool.query(text, values);
      if (!values) return found;
      const [tokyo, berlin] = found.rows;
      tokyo.offsets = null;
      berlin.offsets[2] += 3_600;
      return found;
    },
  };
  const { ok, sentence } = await compareZones(altered as never);
  expect(ok).toBe(false);
  const third = new Date(Math.floor(Date.now() / 86_400_000 - 363) * 86_400_000).toISOString().slice(0, 10);
  expect(sentence).toContain(`: Asia/Tokyo is unknown to Postgres, Europe/Berlin from ${third}. Queries of`);
});
