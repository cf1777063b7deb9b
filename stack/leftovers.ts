import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type Report, StackProblem } from './problem.ts';
import { isRunning, processStart, type StopStep, stopOrphan } from './process.ts';

// Postgres keeps such a record itself (postmaster.pid); every other process of the stack has one here.
function recordOf(dataDir: string, name: string): string {
  return path.join(dataDir, 'processes', `${name}.json`);
}

/** Records a process on disk. If this process is killed, the next start finds the recorded one and stops it. */
export function recordProcess(dataDir: string, name: string, pid: number): void {
  const file = recordOf(dataDir, name);
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  writeFileSync(`${file}.new`, JSON.stringify({ pid, started: processStart(pid) }), { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

export function forgetProcess(dataDir: string, name: string): void {
  rmSync(recordOf(dataDir, name), { force: true });
}

/** Stops the recorded process of this name, if an earlier start was killed and left it running. */
export async function stopLeftover(
  dataDir: string,
  name: string,
  report: Report,
  steps: StopStep[] = [
    { signal: 'SIGTERM', milliseconds: 5_000 },
    { signal: 'SIGKILL', milliseconds: 5_000 },
  ],
): Promise<void> {
  let left: { pid: number; started: string };
  try {
    left = JSON.parse(readFileSync(recordOf(dataDir, name), 'utf8'));
  } catch {
    return;
  }
  if (typeof left.started === 'string' && isRunning(left.pid, left.started)) {
    report(`Stopping the ${name} (process ${left.pid}) that an earlier start left running …`);
    await stopOrphan(left.pid, left.started, steps);
    if (isRunning(left.pid, left.started)) {
      throw new StackProblem(
        `The ${name} of an earlier start (process ${left.pid}) does not stop. End it with "kill -9 ${left.pid}", then start Sluice again.`,
      );
    }
  }
  forgetProcess(dataDir, name);
}
