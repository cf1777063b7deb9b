import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const MEGABYTE = Buffer.alloc(1024 * 1024);

export interface SmallDisk {
  /** Where it is mounted. */
  directory: string;
  /** Takes all the space that is left. */
  fill(): void;
  free(): void;
  unmount(): void;
}

function fillWith(file: number, piece: Buffer): void {
  try {
    while (writeSync(file, piece) === piece.length);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

function mount(directory: string, megabytes: number): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', directory], { stdio: 'ignore' });
}

/** Whether this user may mount file systems on this machine. */
export function mayMount(): boolean {
  const directory = mkdtempSync(path.join(tmpdir(), 'sluice-mount-'));
  try {
    mount(directory, 1);
    execFileSync('umount', [directory]);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

/** A file system of its own with so much room. */
export function mountSmallDisk(directory: string, megabytes: number): SmallDisk {
  mkdirSync(directory);
  mount(directory, megabytes);
  const ballast = path.join(directory, 'ballast');
  return {
    directory,
    fill() {
      const file = openSync(ballast, 'a');
      try {
        for (const piece of [MEGABYTE, MEGABYTE.subarray(0, 4_096)]) fillWith(file, piece);
      } finally {
        closeSync(file);
      }
    },
    free: () => rmSync(ballast, { force: true }),
    unmount: () => void execFileSync('umount', ['-l', directory]),
  };
}
