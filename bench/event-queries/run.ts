// `npm run bench -- event-queries [--events 10000000] [--rounds 40] [--plain] [--only few|aggregates]` asks the API for few events of
// many, beside SQL written by hand, and for aggregates of a day and a month, beside DuckDB over a Parquet file of the same events.
// `--plain` takes the indexes of the weeks and what is known of their times away.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { loadConfig } from '../../config.ts';
import { SEALED } from '../../db/event-indexes.ts';
import { ensureEventPartitions, listEventPartitions } from '../../db/event-partitions.ts';
import { sealEventWeeks, summarizeOpenWeeks } from '../../db/event-weeks.ts';
import { createPool, transaction } from '../../db/pool.ts';
import { setUpDatabase } from '../../db/wait.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { issuePersonalApiKey } from '../../tenancy/personal-api-keys.ts';
import { createUser } from '../../tenancy/users.ts';
import { startApi } from '../api-process.ts';
import { measureAggregates } from './aggregates.ts';
import { asking } from './ask.ts';
import { BEGIN, DAY, fill, NOW, PROJECTS, WEEKS } from './dataset.ts';
import { measureFew } from './few.ts';

const { values: given } = parseArgs({
  options: {
    events: { type: 'string', default: '10000000' },
    rounds: { type: 'string', default: '40' },
    plain: { type: 'boolean', default: false },
    only: { type: 'string' },
  },
});
const EVENTS = Number(given.events);
const ROUNDS = Number(given.rounds);

const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const children: ChildProcess[] = [];
const postgres = await startPostgres({
  ...{ dataDir: stateDir, cacheDir, port: 0 },
  settings: { fsync: 'off' },
});
try {
  const roles = await setUpDatabase({ url: postgres.url });
  const pool = createPool({ url: roles.server, size: 4, name: 'bench' });
  const owner = await transaction(pool, async (client) => {
    const user = await createUser(client, { email: 'bench@example.com', firstName: 'Bench' });
    if (!user) throw new Error('the address is taken');
    const { project } = await createOrganization(client, { name: 'Bench', userId: user.id });
    const { value: key } = await issuePersonalApiKey(client, {
      userId: user.id,
      label: 'bench',
      scopes: ['*'],
    });
    return { projectId: project.id, key };
  });
  await ensureEventPartitions(pool, new Date(NOW), 1);
  for (let week = 0; week < WEEKS; week += 1) {
    await ensureEventPartitions(pool, new Date(BEGIN + week * 7 * DAY), 0);
  }
  let since = performance.now();
  const lap = (what: string) => {
    console.log(`${what}: ${((performance.now() - since) / 1000).toFixed(0)} s`);
    since = performance.now();
  };
  await fill(pool, [owner.projectId, owner.projectId + 1], { events: EVENTS });
  await pool.query('vacuum analyze');
  lap(`${EVENTS} events in ${WEEKS} weeks of ${PROJECTS} projects`);
  const work = { signal: new AbortController().signal, beat: () => undefined };
  const sealed = await sealEventWeeks(pool, work);
  lap(`${sealed} weeks sealed`);
  await summarizeOpenWeeks(pool, work);
  lap('the open week summarized');
  if (given.plain) {
    for (const { name } of await listEventPartitions(pool)) {
      for (const index of SEALED) await pool.query(`drop index if exists ${name}_${index.name}`);
    }
    await pool.query('truncate event_weeks, event_spans');
  }
  const { rows: sizes } = await pool.query(
    `select pg_size_pretty(sum(pg_table_size(c.oid))) as heap, pg_size_pretty(sum(pg_indexes_size(c.oid))) as indexes
     from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = 'events'::regclass`,
  );
  console.log(`tables ${sizes[0].heap}, indexes ${sizes[0].indexes}\n`);
  const api = await startApi({ databaseUrl: roles.server, stateDir, children });
  const ask = asking(api.port, owner);
  const measured = { pool, ask, events: EVENTS, project: owner.projectId, rounds: ROUNDS };
  if (given.only !== 'aggregates') await measureFew(measured);
  if (given.only !== 'few') await measureAggregates(measured, stateDir);
  await pool.end();
} finally {
  for (const child of children) child.kill('SIGTERM');
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')));
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
