import { spawn } from 'node:child_process';
import path from 'node:path';
import type { Report } from './problem.ts';

const PROGRESS_MILLISECONDS = 4_000;

export interface GoInstall {
  /** The module and its version, as `go install` takes it. */
  module: string;
  /** The name of the resulting program. */
  program: string;
  /** The directory that receives the program. */
  folder: string;
  report: Report;
  env: NodeJS.ProcessEnv;
  signal?: AbortSignal | undefined;
}

/** Builds a program with the Go of this machine, and reports the progress every few seconds. */
export function goInstall({ module, program, folder, report, env, signal }: GoInstall): Promise<string> {
  const began = Date.now();
  let compiled = 0;
  let downloaded = 0;
  const lastLines: string[] = [];
  const child = spawn('go', ['install', '-v', module], {
    // Without cgo, the build needs no C compiler.
    env: { ...env, GOBIN: folder, CGO_ENABLED: '0' },
    stdio: ['ignore', 'ignore', 'pipe'],
    // In its own process group, so that the compilers that Go starts end with it.
    detached: true,
  });
  const abort = () => {
    if (child.pid) process.kill(-child.pid, 'SIGTERM');
  };
  signal?.addEventListener('abort', abort);
  let rest = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop() as string;
    for (const line of lines) {
      if (line.startsWith('go: downloading')) downloaded += 1;
      else if (/^[\w.\-/]+$/.test(line)) compiled += 1;
      lastLines.push(line);
      if (lastLines.length > 5) lastLines.shift();
    }
  });
  const ticker = setInterval(() => {
    const seconds = Math.round((Date.now() - began) / 1000);
    report(`  ${seconds} s: ${downloaded} modules downloaded, ${compiled} packages compiled`);
  }, PROGRESS_MILLISECONDS);
  return new Promise<string>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve(path.join(folder, program));
      else reject(new Error(`go install failed: ${[...lastLines, rest].filter(Boolean).join(' | ')}`));
    });
  }).finally(() => {
    clearInterval(ticker);
    signal?.removeEventListener('abort', abort);
  });
}
