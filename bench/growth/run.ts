// `npm run bench -- growth [--events 20000000] [--rounds 60] [--keep folder] [--delete seconds]` compares reading from an installation with reading from
// a younger one: it has a hundredth of the events and of the persons, and as many events a day. Each has a database and an API of
// its own on one Postgres, as it ships. The two are asked in turn. Prints a table for RESULTS.md.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import pg from 'pg';
import { loadConfig } from '../../config.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { startApi } from '../api-process.ts';
import { quantile, shown } from '../event-queries/ask.ts';
import { WEEKS } from '../event-queries/dataset.ts';
import { measureDeletion } from './deletion.ts';
import { type Installation, makeInstallation } from './installation.ts';
import { createReadings } from './readings.ts';

const { values: given } = parseArgs({
  options: {
    events: { type: 'string', default: '20000000' },
    rounds: { type: 'string', default: '60' },
    // The data directory is made here and stays, so that the next run finds what this one has filled.
    keep: { type: 'string' },
    // At the end, the large project is deleted, and requests of somebody else are measured for so long at a time beside it.
    delete: { type: 'string' },
  },
});
const EVENTS = Number(given.events);
const ROUNDS = Number(given.rounds);
/** So many rounds are not measured. */
const WARM_UP = 5;
/** The younger installation has so much of everything, and is as much younger, in whole weeks. */
const SHARE = 100;
const YOUNG_WEEKS = Math.ceil(WEEKS / SHARE);

const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const dataDir = given.keep ?? stateDir;
mkdirSync(dataDir, { recursive: true });
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const children: ChildProcess[] = [];
const postgres = await startPostgres({ dataDir, cacheDir, port: 0 });

async function open(name: string, events: number, weeks: number): Promise<Installation> {
  const url = new URL(postgres.url);
  url.pathname = `/${name}`;
  const admin = new pg.Client({ connectionString: postgres.url });
  await admin.connect();
  const { rowCount } = await admin.query('select from pg_database where datname = $1', [name]);
  if (!rowCount) await admin.query(`create database ${name}`);
  await admin.end();
  return makeInstallation({ url: url.href, filling: { events, weeks }, isFull: rowCount === 1 });
}

try {
  const old = await open('old', EVENTS, WEEKS);
  const young = await open('young', Math.floor((EVENTS / WEEKS) * YOUNG_WEEKS), YOUNG_WEEKS);
  const readings = await Promise.all(
    [old, young].map(async (installation) => {
      const api = await startApi({ databaseUrl: installation.serverUrl, stateDir, children });
      return { port: api.port, ...createReadings(installation, api.port) };
    }),
  );
  console.log('| reading | rows | young p50 ms | old p50 ms | old ÷ young | young p99 ms | old p99 ms |');
  console.log('| --- | --- | --- | --- | --- | --- | --- |');
  for (const name of Object.keys(readings[0]?.all ?? {})) {
    const taken: number[][] = [[], []];
    let rows = 0;
    for (let round = -WARM_UP; round < ROUNDS; round += 1) {
      for (const place of round % 2 === 0 ? [0, 1] : [1, 0]) {
        const read = await readings[place]?.prepare(name);
        const start = performance.now();
        const found = await read?.();
        const took = performance.now() - start;
        if (found === undefined || found === 0) throw new Error(`${name}: nothing was found`);
        if (round < 0) continue;
        taken[place]?.push(took);
        if (place === 0) rows += found;
      }
    }
    const [older = [], younger = []] = taken;
    const ratio = quantile(older, 0.5) / quantile(younger, 0.5);
    const cells = [
      ...[name, (rows / ROUNDS).toFixed(0), shown(quantile(younger, 0.5)), shown(quantile(older, 0.5))],
      ...[ratio.toFixed(2), shown(quantile(younger, 0.99)), shown(quantile(older, 0.99))],
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  for (const { close } of readings) await close();
  if (given.delete) await measureDeletion(old, readings[0]?.port ?? 0, { seconds: Number(given.delete) });
  for (const { pool } of [old, young]) await pool.end();
} finally {
  for (const child of children) child.kill('SIGTERM');
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')));
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
