// The yardstick, as a process of its own: reads the rows by COPY, and parses their properties.
import { copyOut } from '../../db/copy-out.ts';
import { createPool } from '../../db/pool.ts';
import { RowPieces, rowsIn } from '../../functions/dispatch/event-rows.ts';
import { eventsInPlaceSql } from '../../functions/rows/events.ts';

const { DATABASE_URL = '', PARTITION = '', XIDS = '' } = process.env;
const pool = createPool({
  ...{ url: DATABASE_URL, name: 'bench', size: 2, onError: (error) => console.error(error) },
  limits: { lock: 10_000, statement: 600_000, transaction: 600_000 },
});
const nothing = { groupsOf: [], listedOf: { projects: [], cohorts: [] } };
const place = {
  ...{ partition: PARTITION, fromPage: 0, toPage: 2 ** 31 - 1 },
  ...{ xids: XIDS.split(',').map(Number), projects: [1] },
};
const sql = eventsInPlaceSql(place, nothing);
const began = performance.now();
let rows = 0;
const pieces = new RowPieces(512 * 1024);
const parse = (bytes: Buffer | undefined) => {
  for (const row of bytes ? rowsIn(bytes) : []) {
    if (typeof JSON.parse(row.properties) === 'object') rows += 1;
  }
};
for await (const chunk of copyOut(pool, sql)) parse(pieces.take(chunk));
parse(pieces.rest());
const { user, system } = process.cpuUsage();
console.log(
  JSON.stringify({ rows, seconds: (performance.now() - began) / 1_000, cpu: (user + system) / 1e6 }),
);
await pool.end();
