import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

/** Runs one of the programs next to this file as a process of its own. */
export function run(program: string, ...args: string[]): ChildProcess {
  return fork(path.join(import.meta.dirname, program), args, { execArgv: [] });
}

export async function messageOf<T>(child: ChildProcess): Promise<T> {
  const [message] = await once(child, 'message');
  return message as T;
}

/** Kills the process as no program can prevent, and waits until it is gone. */
export async function killNow(child: ChildProcess): Promise<void> {
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}
