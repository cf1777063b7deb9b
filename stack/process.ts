import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, statSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A process of the stack. */
export interface Service {
  pid: number;
  /** Resolves when the process has ended for any reason; never rejects. */
  exited: Promise<Exit>;
  /** Ends the process gently, and harder if that takes too long. You can call it repeatedly. */
  stop(options?: StopOptions): Promise<void>;
}

export interface StopOptions {
  /** Time limit of the gentle way in milliseconds. */
  within?: number;
  /** Ends the wait for the gentle way: the process is ended the harder way at once. */
  hurry?: AbortSignal;
}

/**
 * The start of a process, as a text that differs for every process with the same number; undefined if there is no such
 * process. It shows whether a recorded process number now belongs to another program.
 */
export function processStart(pid: number): string | undefined {
  if (process.platform !== 'linux') {
    try {
      const started = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
        env: { ...process.env, LC_ALL: 'C', TZ: 'UTC' },
      });
      return started.trim() || undefined;
    } catch {
      return undefined;
    }
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The second field is the name of the program in parentheses. The name may contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // A zombie has ended and only waits for its parent to collect it.
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return `${boot} ${fields[19]}`;
  } catch {
    return undefined;
  }
}

/** Whether the process number is in use. Unlike isRunning(), also true for a process that ended but is not collected yet. */
export function isTaken(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

export function isRunning(pid: number, started?: string): boolean {
  const now = processStart(pid);
  return now !== undefined && (started === undefined || now === started);
}

/** Resolves with true when the process is gone, or with false after `milliseconds`. */
export async function waitUntilGone(pid: number, started: string, milliseconds: number): Promise<boolean> {
  const end = Date.now() + milliseconds;
  while (isRunning(pid, started)) {
    if (Date.now() >= end) return false;
    await pause(25);
  }
  return true;
}

export interface StopStep {
  signal: NodeJS.Signals;
  /** How long to wait for the end of the process before the next step. */
  milliseconds: number;
}

/** Ends a process that is not a child of this one. */
export async function stopOrphan(pid: number, started: string, steps: StopStep[]): Promise<void> {
  for (const step of steps) {
    if (!isRunning(pid, started)) return;
    signalProcess(pid, step.signal);
    if (await waitUntilGone(pid, started, step.milliseconds)) return;
  }
}

/** Sends a signal. It is not an error if the process has already ended. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

const ROTATE_BYTES = 10 * 1024 * 1024;

/** Opens a log for appending. Renames a large log to `<name>.1` first. */
export function openLog(file: string): number {
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 });
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size > ROTATE_BYTES) renameSync(file, `${file}.1`);
  return openSync(file, 'a', 0o600);
}

/** The last lines of a log, not before byte `from`, for an error message. */
export function logTail(file: string, from = 0, lines = 6): string {
  try {
    const text = readFileSync(file).subarray(from).toString('utf8').trim();
    return text.split('\n').slice(-lines).join('\n  ');
  } catch {
    return '';
  }
}

export interface ServiceCommand {
  command: string;
  args: string[];
  env: NodeJS.ProcessEnv;
  logFile: string;
  cwd?: string;
  uid?: number;
  gid?: number;
}

/** Starts a program in a process group of its own, so that ctrl-C in the terminal reaches only this process. */
export function startService(what: ServiceCommand, stopSteps: StopStep[]): Promise<Service> {
  const log = openLog(what.logFile);
  const child = spawn(what.command, what.args, {
    env: what.env,
    stdio: ['ignore', log, log],
    detached: true,
    ...(what.cwd !== undefined && { cwd: what.cwd }),
    ...(what.uid !== undefined && { uid: what.uid }),
    ...(what.gid !== undefined && { gid: what.gid }),
  });
  closeSync(log);
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => resolve(asService(child, stopSteps)));
  });
}

export function asService(child: ChildProcess, stopSteps: StopStep[]): Service {
  const exited = new Promise<Exit>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  let stopping: Promise<void> | undefined;
  const stop = async ({ within, hurry }: StopOptions = {}) => {
    for (const [index, step] of stopSteps.entries()) {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(step.signal);
      const gentle = index === 0;
      const limit = gentle ? (within ?? step.milliseconds) : step.milliseconds;
      const timer = new AbortController();
      const patience = AbortSignal.any([timer.signal, ...(hurry && gentle ? [hurry] : [])]);
      const late = pause(limit, false, { signal: patience }).catch(() => false);
      const ended = await Promise.race([exited.then(() => true), late]);
      timer.abort();
      if (ended) return;
    }
  };
  return {
    pid: child.pid as number,
    exited,
    stop: (options) => {
      stopping ??= stop(options);
      return stopping;
    },
  };
}
