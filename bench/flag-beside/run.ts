// `npm run bench -- flag-beside [--seconds 20] [--rate 100] [--rounds 3] [--flags 50] [--persons 100000]`
// How long requests for flags take while the same process stores events: at half of the rate that it can store, and at all of it.
// Then beside two processes, one for each. Prints a table for RESULTS.md.
import { type ChildProcess, execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs, promisify } from 'node:util';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { startApi } from '../api-process.ts';
import { prepare } from '../flags/dataset.ts';
import { buildGo } from '../go-program.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '20' },
    rate: { type: 'string', default: '100' },
    rounds: { type: 'string', default: '3' },
    flags: { type: 'string', default: '50' },
    persons: { type: 'string', default: '100000' },
    batch: { type: 'string', default: '50' },
  },
});
const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const loadProgram = buildGo('bench/capture/load', path.join(stateDir, 'load'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const children: ChildProcess[] = [];
const run = promisify(execFile);

const api = async () => (await startApi({ databaseUrl: postgres.url, stateDir, children })).port;

interface Captured {
  requestsPerSecond: number;
  eventsPerSecond: number;
  failed: number;
}

/** Stores events for a time. `rate` counts requests per second; 0: as many as possible. */
async function capture(port: number, rate: number, seconds: number): Promise<Captured> {
  const { stdout } = await run(loadProgram, [
    ...['-host', `127.0.0.1:${port}`, '-batch', values.batch, '-connections', '32', '-rate', String(rate)],
    ...['-warmup', '2s', '-duration', `${seconds}s`],
  ]);
  return JSON.parse(stdout);
}

/** The latencies of requests for flags, ascending. */
async function probe(port: number): Promise<number[]> {
  const { stdout } = await run(process.execPath, [path.join(import.meta.dirname, 'probe.ts')], {
    env: {
      ...process.env,
      ...{ PORT: String(port), RATE: values.rate, SECONDS: values.seconds, PERSONS: values.persons },
    },
    maxBuffer: 64 * 1024 * 1024,
  });
  const { latencies, failed } = JSON.parse(stdout) as { latencies: number[]; failed: string[] };
  if (failed.length > 0) throw new Error(`${failed.length} requests for flags failed: ${failed[0]}`);
  return latencies;
}

const at = (sorted: number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
const median = (numbers: number[]) =>
  at(
    numbers.toSorted((a, b) => a - b),
    0.5,
  );

try {
  await migrate(postgres.url);
  await prepare(postgres.url, Number(values.flags), Number(values.persons));
  const [port, other] = [await api(), await api()];
  await probe(port);
  await probe(other);
  await capture(port, 0, 5);
  const seconds = Number(values.seconds);
  const full = await capture(port, 0, 5);
  const beside = async (flagsAt: number, rate: number) => {
    const [captured, latencies] = await Promise.all([capture(port, rate, seconds), probe(flagsAt)]);
    return { captured, latencies };
  };
  const phases = new Map<string, () => Promise<{ captured?: Captured; latencies: number[] }>>([
    ['idle', async () => ({ latencies: await probe(port) })],
    ['half of the rate', () => beside(port, full.requestsPerSecond / 2)],
    ['full rate', () => beside(port, 0)],
    ['full rate, flags in another process', () => beside(other, 0)],
  ]);
  const results = new Map<string, Awaited<ReturnType<NonNullable<ReturnType<typeof phases.get>>>>[]>();
  for (let round = 0; round < Number(values.rounds); round += 1) {
    for (const [name, measure] of phases) {
      const one = await measure();
      results.set(name, [...(results.get(name) ?? []), one]);
      console.error(`${name}: p99 ${at(one.latencies, 0.99).toFixed(1)} ms`);
    }
  }
  const of = (name: string, share: number) =>
    median((results.get(name) ?? []).map((one) => at(one.latencies, share)));
  console.log('| flags while events are stored | events/s | p50 ms | p99 ms | × idle |');
  console.log('| --- | --- | --- | --- | --- |');
  for (const [name, rounds] of results) {
    const events = median(rounds.map(({ captured }) => captured?.eventsPerSecond ?? 0));
    console.log(
      `| ${name} | ${Math.round(events).toLocaleString('en')} | ${of(name, 0.5).toFixed(1)} | ` +
        `${of(name, 0.99).toFixed(1)} | ${(of(name, 0.99) / of('idle', 0.99)).toFixed(1)} |`,
    );
  }
} finally {
  for (const child of children) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
