import { readdirSync, readFileSync } from 'node:fs';

const TICKS = 100;

export interface ProcessStat {
  parent: number;
  /** Seconds of CPU: its own, and of its children that ended. */
  own: number;
  reaped: number;
}

/** As the system counts it; undefined: the process is gone. */
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

/** Seconds of CPU of a process's children, those that ended and those that have not. */
export function childrenCpu(pid: number): number {
  let seconds = processStat(pid)?.reaped ?? 0;
  for (const entry of readdirSync('/proc')) {
    const child = /^\d+$/.test(entry) ? processStat(entry) : undefined;
    if (child?.parent === pid) seconds += child.own;
  }
  return seconds;
}
