// A process that seals ids of events for ever, in small segments, until it is killed.
import { setTimeout as pause } from 'node:timers/promises';
import { sealEventIds } from '../../db/event-id-sealing.ts';
import { createPool } from '../../db/pool.ts';

const [url = '', sizes = ''] = process.argv.slice(2);
const pool = createPool({ url, size: 3, name: 'sealing' });
const work = { signal: new AbortController().signal, beat: () => undefined };
for (;;) {
  await sealEventIds(pool, work, JSON.parse(sizes));
  await pause(5);
}
