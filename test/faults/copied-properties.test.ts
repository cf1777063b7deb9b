import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { uuidv7 } from '../../db/uuid.ts';
import { expectLikeEvents, PEOPLE, visit } from '../capture/copied-properties.ts';
import { carryAll } from '../capture/support.ts';
import { createTenant } from '../support/api.ts';
import { databaseForFile } from '../support/database.ts';
import { eventually } from '../support/eventually.ts';
import { type ApiProgram, programsForFile } from '../support/programs.ts';
import { rounds } from '../support/rounds.ts';
import { allocateNamespace } from '../support/temporal.ts';

const programs = programsForFile();
const database = databaseForFile();

async function startApi(): Promise<ApiProgram> {
  const { address, namespace } = allocateNamespace();
  const env = { DATABASE_URL: database.url, TEMPORAL_ADDRESS: address, TEMPORAL_NAMESPACE: namespace };
  return programs.ready(await programs.startApi(env));
}

test('while processes that store visits, and that carry what they bring, are killed, nobody loses a value', async () => {
  const tenant = await createTenant(database.pool, 'Visits');
  const seed = Date.now() % 1_000_000;
  const visits = fc.sample(visit, { seed, numRuns: rounds(500, 10_000) });
  const apis = [await startApi(), await startApi()];
  let answered = 0;
  let kills = 0;

  const lane = async (number: number) => {
    for (let at = number; at < visits.length; at += 6) {
      const { id, properties } = visits[at] as (typeof visits)[number];
      const event = {
        ...{ uuid: uuidv7(), event: 'seen', distinct_id: id, api_key: tenant.projectToken },
        properties: { ...properties, $set: { [`visit ${at}`]: at } },
      };
      // Until somebody has acknowledged it; then it must not be lost.
      for (let turn = at; ; turn += 1) {
        const answer = await fetch(`${(apis[turn % apis.length] as ApiProgram).url}/i/v0/e/`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(event),
        }).catch(() => undefined);
        if (answer?.status === 200) break;
      }
      answered += 1;
    }
  };
  const killCarriers = async () => {
    while (answered < visits.length || kills < 5) {
      const carrier = programs.start('test/capture/carry-process.ts', { DATABASE_URL: database.url });
      const runs = () => carrier.output().split('begins').length - 1;
      // In the middle of a later run, wherever that is.
      await eventually(async () => runs() > 2 + (kills % 3));
      carrier.kill('SIGKILL');
      await carrier.exited;
      kills += 1;
    }
  };
  const killApis = async () => {
    for (const part of [0.3, 0.6]) {
      await eventually(async () => answered > visits.length * part);
      const index = part > 0.5 ? 1 : 0;
      apis[index]?.kill('SIGKILL');
      await apis[index]?.exited;
      apis[index] = await startApi();
    }
  };
  await Promise.all([...[0, 1, 2, 3, 4, 5].map(lane), killCarriers(), killApis()]);

  expect(kills).toBeGreaterThanOrEqual(5);
  await carryAll(database.pool);
  expect(await expectLikeEvents(database.pool, tenant.projectId)).toBe(PEOPLE);
  // What was set by name is there, all of it.
  const { rows } = await database.pool.query(
    `select count(*)::int as named, sum(t.value::int)::int as sum from persons, jsonb_each_text(properties) t
     where project_id = $1 and t.key like 'visit %'`,
    [tenant.projectId],
  );
  const last = visits.length - 1;
  expect(rows).toEqual([{ named: visits.length, sum: (last * (last + 1)) / 2 }]);
});
