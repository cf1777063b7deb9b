import { spawn } from 'node:child_process';
import { readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { childrenCpu, processStat } from '../process-stat.ts';

export interface Measured {
  seconds: number;
  /** The CPU time in seconds: of the exporter, of Postgres, and of a server at the destination. */
  client: number;
  postgres: number;
  server: number;
  /** The memory in megabytes, if the exporter reports it: the peak, and how much it grew. */
  peak: number | undefined;
  growth: number | undefined;
  /** The megabytes written to the folder. */
  written: number;
}

export interface Surroundings {
  folder: string;
  postmaster: number;
  /** The process id of the S3 server. */
  server: number | undefined;
}

const filesOf = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));

/**
 * Runs one export and measures it. A command that prints JSON measures its own time and CPU, without its startup. For
 * other commands, everything counts.
 */
export async function measure(
  command: readonly string[],
  env: Readonly<Record<string, string>>,
  { folder, postmaster, server }: Surroundings,
): Promise<Measured> {
  for (const name of readdirSync(folder)) rmSync(path.join(folder, name), { recursive: true });
  const usage = () => ({
    client: processStat(process.pid)?.reaped ?? 0,
    postgres: childrenCpu(postmaster),
    server: server === undefined ? 0 : (processStat(server)?.own ?? 0),
  });
  const before = usage();
  const begun = performance.now();
  const [program, ...args] = command as [string, ...string[]];
  const child = spawn(program, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`A command ended with ${code}: ${command.join(' ')}`);
  const seconds = (performance.now() - begun) / 1000;
  // Backends end shortly after their clients.
  await pause(200);
  const after = usage();
  const told = output.trim() === '' ? undefined : JSON.parse(output.trim().split('\n').at(-1) as string);
  return {
    seconds: told?.seconds ?? seconds,
    client: told?.cpu ?? after.client - before.client,
    postgres: after.postgres - before.postgres,
    server: after.server - before.server,
    peak: told?.peak,
    growth: told?.idle === undefined ? undefined : told.peak - told.idle,
    written: filesOf(folder).reduce((sum, file) => sum + statSync(file).size, 0) / 1e6,
  };
}
