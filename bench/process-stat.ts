import { readdirSync, readFileSync } from 'node:fs';

const TICKS = 100;

export interface ProcessStat {
  parent: number;
  /** The CPU time in seconds: of the process, and of its children that have ended. */
  own: number;
  reaped: number;
}

/** Returns the counters of a process, or undefined if it has ended. */
export function processStat(pid: number | string): ProcessStat | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = text
      .slice(text.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    const seconds = (index: number) => ((fields[index] as number) + (fields[index + 1] as number)) / TICKS;
    return { parent: fields[1] as number, own: seconds(11), reaped: seconds(13) };
  } catch {
    return undefined;
  }
}

/** Returns the CPU time of a process's children in seconds, both running and ended. */
export function childrenCpu(pid: number): number {
  let seconds = processStat(pid)?.reaped ?? 0;
  for (const entry of readdirSync('/proc')) {
    const child = /^\d+$/.test(entry) ? processStat(entry) : undefined;
    if (child?.parent === pid) seconds += child.own;
  }
  return seconds;
}

/** Returns the CPU time in seconds of the threads that a process has now, to the nanosecond. */
export function threadsCpu(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number.parseInt(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8'), 10);
  }
  return nanoseconds / 1e9;
}

/** Returns the most memory in megabytes that a process has had. */
export function residentPeak(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}
