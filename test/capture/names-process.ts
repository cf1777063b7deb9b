// A process that stores events with ever new properties until it is killed. `stored <number>` says that the property of this
// number was acknowledged.
import { writeSync } from 'node:fs';
import { createDefinitions } from '../../capture/definitions/definitions.ts';
import { createIngest } from '../../capture/ingest.ts';
import { createPool } from '../../db/pool.ts';
import { capturedEvent } from './support.ts';

const [url = '', project = ''] = process.argv.slice(2);
const names = createDefinitions({ pool: createPool({ url, size: 1, name: 'names' }) });
const ingest = createIngest({ pool: createPool({ url, size: 2, name: 'ingest' }), names });

for (let number = 0; ; number += 1) {
  const properties = { always: true, [`property ${number}`]: number };
  await ingest.submit({
    projectId: Number(project),
    events: [capturedEvent({ properties, received_at: Date.now() })],
  });
  writeSync(1, `stored ${number}\n`);
}
