// An API at its full rate of capture, for benchmarks of what else it does meanwhile.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { loadConfig } from '../config.ts';
import { migrate } from '../db/migrate.ts';
import { createPool, transaction } from '../db/pool.ts';
import { startPostgres } from '../stack/postgres.ts';
import { createOrganization } from '../tenancy/organizations.ts';
import { issuePersonalApiKey } from '../tenancy/personal-api-keys.ts';
import { createUser } from '../tenancy/users.ts';
import { startApi } from './api-process.ts';
import { buildGo } from './go-program.ts';

export interface Captured {
  eventsPerSecond: number;
  p99: number;
  failed: number;
}

export interface Capturing {
  port: number;
  /** The project that captures, and the key of somebody who may read it. */
  project: number;
  key: string;
  /** Processes that end with it. */
  children: ChildProcess[];
  /** Stores events as fast as possible. */
  capture(seconds: number): Promise<Captured>;
  end(): Promise<void>;
}

/** Starts Postgres and an API, whose load comes in batches of so many events over 32 connections. */
export async function startCapturing(batch: string): Promise<Capturing> {
  const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
  const loadProgram = buildGo('bench/capture/load', path.join(stateDir, 'load'));
  const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
  const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
  const children: ChildProcess[] = [];
  const end = async () => {
    for (const child of children) child.kill('SIGKILL');
    await postgres.stop();
    rmSync(stateDir, { recursive: true, force: true });
  };
  try {
    await migrate(postgres.url);
    const reader = await prepare(postgres.url);
    const { port } = await startApi({ databaseUrl: postgres.url, stateDir, children });
    const capture = async (seconds: number) => {
      const { stdout } = await promisify(execFile)(loadProgram, [
        ...['-host', `127.0.0.1:${port}`, '-batch', batch, '-connections', '32'],
        ...['-warmup', '2s', '-duration', `${seconds}s`],
      ]);
      return JSON.parse(stdout);
    };
    return { port, ...reader, children, capture, end };
  } catch (error) {
    await end();
    throw error;
  }
}

/** Makes the project that captures, and somebody who may read it. */
async function prepare(url: string): Promise<{ key: string; project: number }> {
  const pool = createPool({ url, size: 1, name: 'bench' });
  try {
    return await transaction(pool, async (client) => {
      const user = await createUser(client, { email: 'bench@example.com', firstName: 'bench' });
      if (!user) throw new Error('the address is taken');
      const { project } = await createOrganization(client, { name: 'bench', userId: user.id });
      // The load generator knows this key.
      await client.query(`update projects set api_token = 'phc_bench' where id = $1`, [project.id]);
      const issued = await issuePersonalApiKey(client, {
        ...{ userId: user.id, label: 'bench', scopes: ['query:read'] },
      });
      return { key: issued.value, project: project.id };
    });
  } finally {
    await pool.end();
  }
}

/**
 * Starts a program that does something else meanwhile. Returns how to stop it, which brings the JSON that it prints then. `env` says
 * what it does; the port, the project and the key are given.
 */
export function startBeside<Result>(
  { port, project, key, children }: Capturing,
  file: string,
  env: NodeJS.ProcessEnv,
): () => Promise<Result> {
  const child = spawn(process.execPath, [file], {
    env: { ...process.env, PORT: String(port), PROJECT: String(project), KEY: key, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const gone = once(child, 'close');
  return async () => {
    child.kill('SIGTERM');
    await gone;
    return JSON.parse(output);
  };
}

/** Runs each mode once a round. Each round has another order, so that none is always behind the same one. */
export async function inRounds<Result>(
  modes: readonly string[],
  rounds: number,
  run: (mode: string) => Promise<Result>,
): Promise<Map<string, Result[]>> {
  const results = new Map<string, Result[]>(modes.map((mode) => [mode, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const mode of round % 2 === 0 ? modes : modes.toReversed()) {
      results.get(mode)?.push(await run(mode));
    }
  }
  return results;
}

export const at = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;

export const median = (numbers: readonly number[]) =>
  at(
    numbers.toSorted((a, b) => a - b),
    0.5,
  );

/** The cells of a table about capture: events a second, the ratio to the first mode in each round, and the p99. */
export function captureCells(results: ReadonlyMap<string, readonly Captured[]>, mode: string): string {
  const rates = (name: string) => (results.get(name) ?? []).map(({ eventsPerSecond }) => eventsPerSecond);
  const base = rates([...results.keys()][0] as string);
  const ratios = rates(mode).map((rate, round) => rate / (base[round] as number));
  const p99 = median((results.get(mode) ?? []).map((one) => one.p99));
  return (
    `${Math.round(median(rates(mode))).toLocaleString('en')} | ${median(ratios).toFixed(2)} ` +
    `(${ratios.map((one) => one.toFixed(2)).join(', ')}) | ${p99.toFixed(0)}`
  );
}
