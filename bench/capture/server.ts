// The Node servers of the benchmark, one for each process. `SERVER=ingest` is a bare Fastify route over capture/ingest.
// `SERVER=insert` is the usual way: one statement and one commit for each request. `SERVER=echo` only parses and
// answers.
import Fastify from 'fastify';
import type { CapturedEvent } from '../../capture/captured-event.ts';
import { createIngest } from '../../capture/ingest.ts';
import { personId } from '../../db/person-ids.ts';
import { createPool } from '../../db/pool.ts';

interface WireEvent {
  uuid: string;
  event: string;
  distinct_id: string;
  timestamp: string;
  properties: Record<string, unknown>;
}
type WireBody = WireEvent & { batch?: WireEvent[] };

const PROJECT = 1;
const { DATABASE_URL: url = '', ADDRESS = '', SERVER = 'ingest' } = process.env;
const [host, port] = ADDRESS.split(':');
const app = Fastify({ bodyLimit: 20 * 1024 * 1024 });
const answer = { status: 'Ok' };

function captured(body: WireBody): CapturedEvent[] {
  const received_at = Date.now();
  return (body.batch ?? [body]).map(({ uuid, event, distinct_id, timestamp, properties }, index) => ({
    index,
    uuid,
    event,
    distinct_id,
    properties,
    timestamp: Date.parse(timestamp),
    received_at,
    ip: undefined,
    historical: false,
  }));
}

let handle: (events: CapturedEvent[]) => Promise<unknown>;
if (SERVER === 'ingest') {
  const ingest = createIngest({ pool: createPool({ url, size: 2, name: 'ingest' }) });
  handle = (events) => ingest.submit({ projectId: PROJECT, events });
} else if (SERVER === 'insert') {
  const pool = createPool({ url, size: 16, name: 'insert' });
  handle = (events) =>
    pool.query(
      `with new as (
         insert into event_ids (project_id, uuid, timestamp)
         select distinct on (uuid) $1::int, uuid, timestamp from unnest($2::uuid[], $3::timestamptz[]) as given (uuid, timestamp)
         order by uuid on conflict do nothing returning uuid)
       insert into events (project_id, uuid, timestamp, created_at, inserted_at, historical, event, distinct_id, properties,
         session_id, window_id, elements_chain, person_id, person_mode, person_properties)
       select $1, uuid, timestamp, now(), now(), false, event, distinct_id, properties, session_id, window_id, '', person_id, 'full', '{}'
       from unnest($2::uuid[], $3::timestamptz[], $4::text[], $5::text[], $6::json[], $7::text[], $8::text[], $9::uuid[])
         as given (uuid, timestamp, event, distinct_id, properties, session_id, window_id, person_id)
       where uuid in (select uuid from new)`,
      [
        PROJECT,
        events.map((one) => one.uuid),
        events.map((one) => new Date(one.timestamp).toISOString()),
        events.map((one) => one.event),
        events.map((one) => one.distinct_id),
        events.map((one) => JSON.stringify(one.properties)),
        events.map((one) => one.properties.$session_id ?? null),
        events.map((one) => one.properties.$window_id ?? null),
        events.map((one) => personId(PROJECT, one.distinct_id)),
      ],
    );
} else {
  handle = async () => undefined;
}

for (const path of ['/batch/', '/i/v0/e/']) {
  app.post(path, async (request) => {
    await handle(captured(request.body as WireBody));
    return answer;
  });
}
await app.listen({ host: host as string, port: Number(port) });
process.once('SIGTERM', () => process.exit(0));
