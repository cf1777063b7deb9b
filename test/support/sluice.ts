import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { cacheDir } from './data-dir.ts';
import { reservePort } from './ports.ts';

/** The last thing that `npm start` prints. */
export const READY = 'Ctrl-C stops everything';
const ROOT = path.resolve(import.meta.dirname, '../..');

export interface SluiceProcess {
  child: ChildProcess;
  /** Everything it has printed. */
  output(): string;
  /** Settles when the text has been printed; rejects when the process ends without having done so. */
  until(text: string): Promise<void>;
  /** Sends a signal and settles with the exit code when the process has ended. */
  end(signal: NodeJS.Signals): Promise<number | null>;
}

/** Settings with ports of their own, so that several installations run side by side. */
export async function settingsFor(dataDir: string): Promise<Record<string, string>> {
  const [api, postgres, temporal, ui] = await Promise.all([
    reservePort(),
    reservePort(),
    reservePort(),
    reservePort(),
  ]);
  return {
    SLUICE_DATA_DIR: dataDir,
    SLUICE_CACHE_DIR: cacheDir,
    PORT: String(api),
    SLUICE_POSTGRES_PORT: String(postgres),
    SLUICE_TEMPORAL_PORT: String(temporal),
    SLUICE_TEMPORAL_UI_PORT: String(ui),
  };
}

/** Runs `npm start` as a person would, or its program directly. */
export function startSluice(
  settings: Record<string, string>,
  command: string[] = [process.execPath, 'stack/main.ts'],
): SluiceProcess {
  const { NODE_OPTIONS: _ours, ...env } = process.env;
  const child = spawn(command[0] as string, command.slice(1), {
    cwd: ROOT,
    env: { ...env, ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let text = '';
  let wake = () => {};
  const ended = once(child, 'close').then(() => wake());
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (piece: string) => {
      text += piece;
      wake();
    });
  }
  const over = () => child.exitCode !== null || child.signalCode !== null;
  return {
    child,
    output: () => text,
    async until(expected) {
      while (!text.includes(expected)) {
        if (over()) {
          await ended;
          if (text.includes(expected)) return;
          throw new Error(`Sluice ended (code ${child.exitCode}) without printing "${expected}":\n${text}`);
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
    async end(signal) {
      if (!over()) child.kill(signal);
      await ended;
      return child.exitCode;
    },
  };
}

/** Process numbers of everything that the Sluice of a data directory started. */
export function processesOf(dataDir: string): number[] {
  const records = path.join(dataDir, 'processes');
  const pids = existsSync(records)
    ? readdirSync(records).map((name) => JSON.parse(readFileSync(path.join(records, name), 'utf8')).pid)
    : [];
  const postmaster = path.join(dataDir, 'postgres', 'postmaster.pid');
  return existsSync(postmaster) ? [...pids, Number.parseInt(readFileSync(postmaster, 'utf8'), 10)] : pids;
}
