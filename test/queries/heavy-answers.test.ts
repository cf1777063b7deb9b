// Answers that take more memory than their values have bytes, and clients that do not take them.
import { connect, type Socket } from 'node:net';
import { beforeAll, expect, test } from '@jest/globals';
import type { App } from '../../api/dependencies.ts';
import { capturedEvent } from '../capture/support.ts';
import { apiForFile, tenantsForFile } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = apiForFile();
const { mallory } = tenantsForFile(api, 'mallory');

beforeAll(async () => {
  await api.ingest.submit({ projectId: mallory.projectId, events: [capturedEvent()] });
});

const path = () => `/api/projects/${mallory.projectId}/query/`;
const ask = (query: object) => api.request(mallory, 'POST', path(), { query });
const select = (query: string) => ask({ kind: 'HogQLQuery', query });
const rows = (count: number) => `(select arrayJoin(range(${count})) as n from events)`;
const columns = (count: number) => Array.from({ length: count }, (_, index) => `n as c${index}`).join(', ');

test('very many small values are refused before they fill the memory', async () => {
  const many = await select(`select ${columns(200)} from ${rows(20_000)} limit 20000`);
  expect([many.statusCode, many.json().detail]).toEqual([400, expect.stringMatching(/too many values/)]);
  const fewer = await select(`select ${columns(20)} from ${rows(20_000)} limit 20000`);
  expect(fewer.json().results).toHaveLength(20_000);
});

test('values that are larger as JSON count as JSON', async () => {
  // Each letter is written with six.
  const value = "repeat(unhex('01'), 500000)";
  const many = await select(`select ${value} as v from ${rows(30)}`);
  expect([many.statusCode, many.json().detail]).toEqual([400, expect.stringMatching(/too many values/)]);
  expect((await select(`select ${value} as v from ${rows(2)}`)).json().results).toHaveLength(2);
});

test('distinct ids of persons count, too', async () => {
  await api.pool.query(
    `with added as (
       insert into persons (project_id, id, created_at, is_identified, properties, version, changed_at)
       select $1, gen_random_uuid(), now(), false, '{}', 0, now() from generate_series(1, 1500) returning id)
     insert into person_distinct_ids (project_id, distinct_id, person_id, version, changed_at)
     select $1, id || '-' || number || repeat('x', 2000), id, 0, now() from added, generate_series(1, 10) as number`,
    [mallory.projectId],
  );
  const all = await ask({ kind: 'ActorsQuery', select: ['person'], limit: 2_000 });
  expect([all.statusCode, all.json().detail]).toEqual([400, expect.stringMatching(/distinct ids .* 16 MiB/)]);
  const some = await ask({ kind: 'ActorsQuery', select: ['person'], limit: 100 });
  expect(some.json().results).toHaveLength(100);
});

/** Sends a query for an answer of 8 MB, and reads nothing of it. */
async function askAndWait(app: App): Promise<Socket> {
  const { hostname, port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
  const query = `select repeat('x', 80000) as v from ${rows(100)} limit 100`;
  const body = JSON.stringify({ query: { kind: 'HogQLQuery', query } });
  const socket = connect(Number(port), hostname).pause();
  socket.write(
    `POST ${path()} HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${mallory.key}\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return socket;
}

test('a client that does not take its answer is cut off', async () => {
  const app = await api.rebuild({ takeMilliseconds: 500 });
  const closed: boolean[] = [];
  app.server.on('request', (_request, response) => {
    response.once('close', () => closed.push(response.writableFinished));
  });
  const socket = await askAndWait(app);
  await eventually(async () => closed.length === 1);
  expect(closed).toEqual([false]);
  socket.destroy();
  await app.close();
});
