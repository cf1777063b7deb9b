// `npm run bench -- neighbour [--seconds 60] [--phases patterns,patches,queries,floods,lists,all] [--no-busy] [--profile folder]
// [--write]`
// What a tenant notices of another one that misbehaves. An open loop of requests of the one who behaves is measured
// alone, then while the other does one kind of harm after the other, then all at once. Everything is a process of its
// own, and the API and the worker run as they ship. After each harm, `busy` repeats the measurement beside processes
// that take as much CPU time and do not talk to Sluice: what the machine itself does to the figures.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { API_OPTIONS, freePort, ready } from '../api-process.ts';
import { type ExportStack, MeasuredProcess, startExportStack } from '../export-stack.ts';
import { childrenCpu, processStat } from '../process-stat.ts';
import type { BusyTask } from './busy.ts';
import { watchLoop } from './loop-lag.ts';
import type { Harm, HarmResult, HarmTask } from './misbehave.ts';
import { COLD_KEYS_PER_SECOND } from './mixture.ts';
import type { ProbeResult, ProbeTask } from './probe.ts';
import { type Phase, report } from './report.ts';
import { createTenants } from './tenants.ts';

const { values } = parseArgs({
  allowNegative: true,
  options: {
    seconds: { type: 'string', default: '60' },
    phases: { type: 'string', default: 'patterns,patches,queries,floods,lists,all' },
    events: { type: 'string', default: '200000' },
    busy: { type: 'boolean', default: true },
    // The folder for a CPU profile of the API.
    profile: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const SECONDS = Number(values.seconds);
const ALL: Harm[] = ['patterns', 'patches', 'queries', 'floods'];
/** A key counts as not seen for a minute, so there are enough of them for more than a minute. */
const COLD_KEYS = COLD_KEYS_PER_SECOND * 70;
const WARM_UP_SECONDS = 15;
/** The harm begins before the measurement, and what it has left behind may end before the next one begins. */
const LEAD_SECONDS = 2;
const REST_SECONDS = 15;
/** Whoever misbehaves sits on other machines. Here its processes must not take CPU time from those that are measured. */
const NICE = 10;
const root = path.resolve(import.meta.dirname, '../..');
const cores = os.availableParallelism();

interface Helper<T> {
  child: ChildProcess;
  result: Promise<T>;
}

const helpers = new Set<ChildProcess>();

/** Starts a process of the benchmark. Its last line is its result. */
function help<T>(file: string, task: object, nice = 0): Helper<T> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, file)], {
    env: { ...process.env, NODE_ENV: 'production', NEIGHBOUR_TASK: JSON.stringify(task) },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  helpers.add(child);
  if (nice > 0) os.setPriority(child.pid as number, nice);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const result = new Promise<T>((resolve, reject) => {
    child.once('close', (code) => {
      helpers.delete(child);
      if (code === 0) resolve(JSON.parse(output));
      else reject(new Error(`${file} ended with ${code}`));
    });
  });
  return { child, result };
}

/** Tells processes that their time is over, and returns their results. */
function end<T>(ending: Helper<T>[]): Promise<T[]> {
  for (const { child } of ending) child.kill('SIGTERM');
  return Promise.all(ending.map(({ result }) => result));
}

function startApi(stack: ExportStack, port: number, loopFile: string) {
  const options = [...API_OPTIONS, '--import', path.join(import.meta.dirname, 'watch-loop.ts')];
  if (values.profile) {
    mkdirSync(values.profile, { recursive: true });
    options.push('--cpu-prof', '--cpu-prof-name=api.cpuprofile');
    options.push(`--cpu-prof-dir=${path.resolve(values.profile)}`);
  }
  const output = openSync(path.join(stack.stateDir, 'api.log'), 'w');
  const child = spawn(process.execPath, [...options, path.join(root, 'api/main.ts')], {
    env: {
      ...process.env,
      ...stack.env,
      NODE_ENV: 'production',
      SLUICE_HOST: '127.0.0.1',
      PORT: String(port),
      LOOP_FILE: loopFile,
    },
    stdio: ['ignore', output, output],
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  const stop = async () => {
    child.kill('SIGTERM');
    await gone;
  };
  return { process: new MeasuredProcess(child.pid as number), stop };
}

async function bench(stack: ExportStack): Promise<Phase[]> {
  const port = await freePort();
  const loopFile = path.join(stack.stateDir, 'loop.jsonl');
  const api = startApi(stack, port, loopFile);
  try {
    await ready(port);
    const tenants = await createTenants(stack.pool, port, {
      events: Number(values.events),
      coldKeys: COLD_KEYS,
    });
    const { rows } = await stack.pool.query('select pg_backend_pid() as pid');
    const postmaster = processStat(rows[0].pid)?.parent ?? 0;
    const cpu = () => ({ api: api.process.cpu, postgres: childrenCpu(postmaster) });
    let coldKeysUsed = 0;

    async function probe(name: string, seconds: number): Promise<Phase> {
      const task: ProbeTask = {
        ...{ port, tenant: tenants.behaving, seconds },
        ...{ coldKeys: tenants.coldKeys, coldKeysUsed },
      };
      coldKeysUsed += seconds * COLD_KEYS_PER_SECOND;
      const loop = watchLoop(loopFile);
      const before = cpu();
      const measured = await help<ProbeResult>('probe.ts', task).result;
      const after = cpu();
      const late = await loop.end();
      return {
        ...{ name, seconds, probe: measured, late, load: os.loadavg()[0] as number },
        cpu: { api: after.api - before.api, postgres: after.postgres - before.postgres, harm: 0 },
        harm: {},
      };
    }

    async function beside(name: string, harms: Harm[]): Promise<Phase> {
      const tasks = harms.map((harm): HarmTask => ({ port, tenant: tenants.misbehaving, harm }));
      const harmful = tasks.map((task) => help<HarmResult>('misbehave.ts', task, NICE));
      await pause(LEAD_SECONDS * 1000);
      const phase = await probe(name, SECONDS);
      const results = await end(harmful);
      phase.cpu.harm = results.reduce((sum, { cpu: own }) => sum + own, 0);
      phase.harm = Object.assign({}, ...results.map(({ answers }) => answers));
      await pause(REST_SECONDS * 1000);
      return phase;
    }

    /** Measures while the machine is as full as in a phase, by processes that do not talk to Sluice. */
    async function busy(like: Phase, alone: Phase): Promise<Phase> {
      const total = ({ cpu: { api: ofApi, postgres, harm } }: Phase) => ofApi + postgres + harm;
      const share = Math.max(0, total(like) - total(alone)) / SECONDS / cores;
      const task: BusyTask = { share: Math.min(1, share) };
      const helping = Array.from({ length: cores }, () => help('busy.ts', task));
      await pause(LEAD_SECONDS * 1000);
      const phase = await probe(`busy like ${like.name}`, SECONDS);
      await end(helping);
      return phase;
    }

    await probe('warm-up', WARM_UP_SECONDS);
    const alone = await probe('alone', SECONDS);
    const phases = [alone];
    for (const name of values.phases.split(',')) {
      const phase = await beside(name, name === 'all' ? ALL : [name as Harm]);
      console.error(`${name}: ${JSON.stringify(phase.harm)}`);
      phases.push(phase);
      if (values.busy) phases.push(await busy(phase, alone));
    }
    return phases;
  } finally {
    await api.stop();
  }
}

const stack = await startExportStack();
const stop = async () => {
  for (const child of helpers) child.kill('SIGKILL');
  await stack.stop();
};
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void stop().finally(() => process.exit(1)));
}
try {
  const phases = await bench(stack);
  const { text, figures } = report(phases);
  console.log(text);
  if (values.write) {
    writeFileSync(path.join(import.meta.dirname, 'results.json'), `${JSON.stringify(figures, null, 2)}\n`);
  }
} finally {
  await stop();
}
