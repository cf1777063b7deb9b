// A process that stores events as fast as it can until it is killed. Each line it prints is one event:
// `sent <uuid>` before it is handed over, `stored <uuid>` after it was acknowledged.
import { writeSync } from 'node:fs';
import { createIngest } from '../../capture/ingest.ts';
import { createPool } from '../../db/pool.ts';
import { capturedEvent } from './support.ts';

const [url = '', project = '', lanes = ''] = process.argv.slice(2);
const ingest = createIngest({ pool: createPool({ url, size: 2, name: 'ingest' }) });

async function lane(size: number): Promise<never> {
  for (;;) {
    const events = Array.from({ length: size }, () => capturedEvent());
    writeSync(1, events.map(({ uuid }) => `sent ${uuid}\n`).join(''));
    await ingest.submit({ projectId: Number(project), events });
    writeSync(1, events.map(({ uuid }) => `stored ${uuid}\n`).join(''));
  }
}

await Promise.all(Array.from({ length: Number(lanes) }, (_, index) => lane(1 + (index % 3) * 10)));
