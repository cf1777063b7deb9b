// A process that carries copied properties into persons, over and over and in small transactions, until it is killed. Each line
// that it prints says that a run has begun or ended.
import { writeSync } from 'node:fs';
import { createPool } from '../../db/pool.ts';
import { carryAll } from './support.ts';

const { DATABASE_URL: url = '' } = process.env;
const pool = createPool({ url, size: 2, name: 'carry' });
for (;;) {
  writeSync(1, 'begins\n');
  await carryAll(pool, { persons: 2, events: 200, bytes: 20_000 });
  writeSync(1, 'ends\n');
}
