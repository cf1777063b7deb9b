import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from '@jest/globals';
import { type Kept, keepRunning } from '../../stack/keeper.ts';
import { asService, isRunning, type Service } from '../../stack/process.ts';

/** A process that lives until it is stopped, or ends at once with a code. */
async function sleeper(exitCode?: number): Promise<Service> {
  const program = exitCode === undefined ? 'setInterval(() => {}, 1000)' : `process.exit(${exitCode})`;
  const child = spawn(process.execPath, ['-e', program], { stdio: 'ignore', detached: true });
  await once(child, 'spawn');
  return asService(child, [
    { signal: 'SIGTERM', milliseconds: 2_000 },
    { signal: 'SIGKILL', milliseconds: 1_000 },
  ]);
}

/** Collects lines, and lets a test wait for the one it expects. */
function reporter() {
  const lines: string[] = [];
  let wake = () => {};
  return {
    lines,
    report: (line: string) => {
      lines.push(line);
      wake();
    },
    async until(text: string): Promise<void> {
      while (!lines.some((line) => line.includes(text))) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    },
  };
}

const unexpected = (error: Error) => {
  throw error;
};

describe('a part that is kept running', () => {
  test('is started again when it was killed, and says so', async () => {
    const { lines, report, until } = reporter();
    const part = { name: 'The part', start: () => sleeper(), logFile: 'part.log' };
    const kept = await keepRunning(part, { report, giveUp: unexpected, backoff: [1] });
    const first = kept.current.pid;
    process.kill(first, 'SIGKILL');
    await until('is running again');
    expect(lines).toEqual([
      'The part ended unexpectedly by SIGKILL; starting it again …',
      'The part is running again.',
    ]);
    const second = kept.current.pid;
    expect(second).not.toBe(first);
    expect(isRunning(second)).toBe(true);
    await kept.stop();
    expect(isRunning(second)).toBe(false);
  });

  test('is given up when it fails again and again', async () => {
    const { lines, report } = reporter();
    let starts = 0;
    const start = () => {
      starts += 1;
      return sleeper(3);
    };
    let kept: Kept<Service> | undefined;
    const problem = await new Promise<Error>((resolve, reject) => {
      keepRunning(
        { name: 'The part', start, logFile: '/logs/part.log' },
        { report, giveUp: resolve, backoff: [1] },
      ).then((one) => {
        kept = one;
      }, reject);
    });
    expect(problem.message).toBe(
      'The part failed 5 times within a minute (last: ended unexpectedly with code 3), so Sluice stops. See /logs/part.log for the reason.',
    );
    expect(starts).toBe(5);
    expect(lines.filter((line) => line.includes('starting it again'))).toHaveLength(4);
    await kept?.stop();
  });

  test('is tried again when its new start fails', async () => {
    const { report, lines, until } = reporter();
    let starts = 0;
    const start = async () => {
      starts += 1;
      if (starts === 2) throw new Error('the port is taken');
      return sleeper();
    };
    const part = { name: 'The part', start, logFile: 'part.log' };
    const kept = await keepRunning(part, { report, giveUp: unexpected, backoff: [1] });
    process.kill(kept.current.pid, 'SIGKILL');
    await until('is running again');
    expect(lines[1]).toBe('The part could not start: the port is taken; starting it again …');
    await kept.stop();
  });

  test('stays stopped when the stop comes between its end and its new start', async () => {
    const { report, until } = reporter();
    let starts = 0;
    const start = () => {
      starts += 1;
      return sleeper();
    };
    const part = { name: 'The part', start, logFile: 'part.log' };
    const kept = await keepRunning(part, { report, giveUp: unexpected, backoff: [600_000] });
    process.kill(kept.current.pid, 'SIGKILL');
    await until('starting it again');
    await kept.stop();
    expect(starts).toBe(1);
  });

  test('its first start is not repeated', async () => {
    const start = () => Promise.reject(new Error('no'));
    const part = { name: 'The part', start, logFile: 'part.log' };
    await expect(keepRunning(part, { report: () => undefined, giveUp: unexpected })).rejects.toThrow('no');
  });
});

test('a process that ignores SIGTERM is killed; in a hurry without waiting', async () => {
  const start = async () => {
    const program = `process.on('SIGTERM', () => {}); console.log('up'); setInterval(() => {}, 1000)`;
    const child = spawn(process.execPath, ['-e', program], {
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
    await once(child.stdout, 'data');
    return asService(child, [
      { signal: 'SIGTERM', milliseconds: 600_000 },
      { signal: 'SIGKILL', milliseconds: 5_000 },
    ]);
  };
  const patient = await start();
  await patient.stop({ within: 1 });
  expect(await patient.exited).toEqual({ code: null, signal: 'SIGKILL' });
  const hurried = await start();
  const hurry = new AbortController();
  const stopped = hurried.stop({ hurry: hurry.signal });
  hurry.abort();
  await stopped;
  expect(await hurried.exited).toEqual({ code: null, signal: 'SIGKILL' });
});
