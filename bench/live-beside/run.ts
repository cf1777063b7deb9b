// `npm run bench -- live-beside [--seconds 6] [--rounds 5] [--batch 50] [--modes nobody,one,twenty]`
// What listeners of live events cost capture: the API at its full rate, in turn without a listener, with one, and with twenty, of
// whom ten have filters of their own. All listen to the project that captures. Prints a table for RESULTS.md.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { loadConfig } from '../../config.ts';
import { migrate } from '../../db/migrate.ts';
import { createPool, transaction } from '../../db/pool.ts';
import { startPostgres } from '../../stack/postgres.ts';
import { createOrganization } from '../../tenancy/organizations.ts';
import { issuePersonalApiKey } from '../../tenancy/personal-api-keys.ts';
import { createUser } from '../../tenancy/users.ts';
import { startApi } from '../api-process.ts';
import { buildGo } from '../go-program.ts';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '6' },
    rounds: { type: 'string', default: '5' },
    batch: { type: 'string', default: '50' },
    modes: { type: 'string', default: 'nobody,one,twenty' },
  },
});
const filtered = (index: number) =>
  new URLSearchParams({ where: `properties.$pathname = '/products/${index * 7}'` }).toString();
const STREAMS: Readonly<Record<string, readonly string[]>> = {
  nobody: [],
  one: [''],
  twenty: [
    ...Array.from({ length: 10 }, () => ''),
    ...Array.from({ length: 10 }, (_, index) => filtered(index)),
  ],
};

const stateDir = mkdtempSync(path.join(tmpdir(), 'sluice-bench-'));
const loadProgram = buildGo('bench/capture/load', path.join(stateDir, 'load'));
const cacheDir = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR }).SLUICE_CACHE_DIR;
const postgres = await startPostgres({ dataDir: stateDir, cacheDir, port: 0 });
const children: ChildProcess[] = [];
const run = promisify(execFile);

/** Makes the project that captures, and returns its id, its key, and the key of somebody who may listen to it. */
async function prepare() {
  const pool = createPool({ url: postgres.url, size: 1, name: 'bench' });
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

interface Captured {
  eventsPerSecond: number;
  p99: number;
  failed: number;
}
interface Heard {
  events: number;
  skipped: number;
  ended: number;
  latencies: number[];
}

/** Stores events as fast as possible. */
async function capture(port: number, seconds: number): Promise<Captured> {
  const { stdout } = await run(loadProgram, [
    ...['-host', `127.0.0.1:${port}`, '-batch', values.batch, '-connections', '32'],
    ...['-warmup', '2s', '-duration', `${seconds}s`],
  ]);
  return JSON.parse(stdout);
}

/** Does work while somebody listens. */
async function beside(
  { port, key, project }: { port: number; key: string; project: number },
  streams: readonly string[],
  work: () => Promise<Captured>,
): Promise<{ captured: Captured; heard: Heard | undefined }> {
  if (streams.length === 0) return { captured: await work(), heard: undefined };
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'listen.ts')], {
    env: {
      ...process.env,
      ...{ PORT: String(port), KEY: key, PROJECT: String(project), STREAMS: JSON.stringify(streams) },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const gone = new Promise((resolve) => child.once('close', resolve));
  await pause(1_000);
  const captured = await work();
  // What was stored last comes up to a second later.
  await pause(2_000);
  child.kill('SIGTERM');
  await gone;
  return { captured, heard: JSON.parse(output) };
}

const at = (sorted: readonly number[], share: number) =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
const median = (numbers: readonly number[]) =>
  at(
    numbers.toSorted((a, b) => a - b),
    0.5,
  );

try {
  await migrate(postgres.url);
  const listening = await prepare();
  const { port } = await startApi({ databaseUrl: postgres.url, stateDir, children });
  await capture(port, 5);
  const modes = values.modes.split(',');
  const results = new Map<string, Awaited<ReturnType<typeof beside>>[]>(modes.map((mode) => [mode, []]));
  for (let round = 0; round < Number(values.rounds); round += 1) {
    // Each round has another order, so that nobody is always behind the same one.
    for (const mode of round % 2 === 0 ? modes : modes.toReversed()) {
      const one = await beside({ port, ...listening }, STREAMS[mode] as readonly string[], () =>
        capture(port, Number(values.seconds)),
      );
      results.get(mode)?.push(one);
      const { captured, heard } = one;
      if (captured.failed > 0) throw new Error(`${captured.failed} requests failed`);
      if (heard && heard.ended > 0) throw new Error(`${heard.ended} streams ended`);
      console.error(
        `${mode}: ${Math.round(captured.eventsPerSecond)} events/s` +
          (heard ? `, heard ${heard.events}, skipped ${heard.skipped}` : ''),
      );
    }
  }
  const rates = (mode: string) => (results.get(mode) ?? []).map(({ captured }) => captured.eventsPerSecond);
  const base = rates(modes[0] as string);
  console.log(
    `| listeners | events/s | × ${modes[0]} (of each round) | p99 ms | heard after ms, p50 | p99 |`,
  );
  console.log('| --- | --- | --- | --- | --- | --- |');
  for (const [mode, rounds] of results) {
    const ratios = rates(mode).map((rate, round) => rate / (base[round] as number));
    const late = rounds.flatMap(({ heard }) => heard?.latencies ?? []).sort((a, b) => a - b);
    const shown = (share: number) => (late.length > 0 ? at(late, share).toLocaleString('en') : '–');
    console.log(
      `| ${mode} | ${Math.round(median(rates(mode))).toLocaleString('en')} | ${median(ratios).toFixed(2)} ` +
        `(${ratios.map((one) => one.toFixed(2)).join(', ')}) | ${median(rounds.map(({ captured }) => captured.p99)).toFixed(0)} | ` +
        `${shown(0.5)} | ${shown(0.99)} |`,
    );
  }
} finally {
  for (const child of children) child.kill('SIGKILL');
  await postgres.stop();
  rmSync(stateDir, { recursive: true, force: true });
}
