import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { afterAll } from '@jest/globals';
import { eventually } from './eventually.ts';
import { reservePort } from './ports.ts';

export interface Program {
  pid: number;
  /** What it wrote until now, both channels. */
  output(): string;
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  kill(signal: NodeJS.Signals): void;
}

export interface ApiProgram extends Program {
  url: string;
  /** The answer of readiness, or undefined while nothing listens. */
  readiness(): Promise<{ status: number; checks: Record<string, unknown> } | undefined>;
}

const newest = path.resolve(import.meta.dirname, '../..');

/** The environment of a process of Sluice. Nothing of the machine's own settings reaches it. */
export function inherited(): Record<string, string | undefined> {
  const { PATH, HOME, NODE_COMPILE_CACHE } = process.env;
  return { PATH, HOME, NODE_COMPILE_CACHE };
}

/** Real processes of Sluice, each ended with the tests of the file. `root`: where its sources are, by default those of today. */
export function programsForFile(root = newest) {
  const children: ChildProcess[] = [];
  afterAll(async () => {
    await Promise.all(
      children
        .filter((child) => child.exitCode === null && child.signalCode === null)
        .map((child) => {
          const gone = new Promise((resolve) => child.once('exit', resolve));
          child.kill('SIGKILL');
          return gone;
        }),
    );
  });

  function start(file: string, env: Record<string, string>): Program {
    const child = spawn(process.execPath, [path.join(root, file)], {
      env: { ...inherited(), NODE_NO_WARNINGS: '1', ...env },
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    children.push(child);
    let text = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        text += chunk;
      });
    }
    return {
      pid: child.pid as number,
      output: () => text,
      // `close` rather than `exit`: everything it wrote has arrived.
      exited: new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal }))),
      kill: (signal) => void child.kill(signal),
    };
  }

  return {
    start,
    async startApi(env: Record<string, string>): Promise<ApiProgram> {
      const port = await reservePort();
      const url = `http://127.0.0.1:${port}`;
      const program = start('api/main.ts', { PORT: String(port), SLUICE_HOST: '127.0.0.1', ...env });
      const readiness = async () => {
        try {
          const answer = await fetch(`${url}/_readyz`);
          const body = (await answer.json()) as { checks: Record<string, unknown> };
          return { status: answer.status, checks: body.checks };
        } catch {
          return undefined;
        }
      };
      return { ...program, url, readiness };
    },
    /** Waits until readiness says yes. */
    async ready(api: ApiProgram): Promise<ApiProgram> {
      await eventually(async () => (await api.readiness())?.status === 200);
      return api;
    },
  };
}
