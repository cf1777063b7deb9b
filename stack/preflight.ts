import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { StackProblem } from './problem.ts';

/** With less free space Postgres would soon stop: its write-ahead log alone grows in segments of 16 MB. */
export const DISK_FLOOR_MB = 300;

/** Creates the directory if it is missing and writes a file into it. Throws a StackProblem if that fails. */
export function requireWritable(directory: string, variable: string): void {
  const probe = path.join(directory, `.probe-${randomUUID()}`);
  try {
    mkdirSync(directory, { recursive: true });
    try {
      writeFileSync(probe, 'x');
    } finally {
      rmSync(probe, { force: true });
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOSPC' || code === 'EDQUOT') {
      throw new StackProblem(
        `The disk that holds ${directory} (${variable}) is full; free at least ${DISK_FLOOR_MB} MB or set ${variable} to a directory on another disk.`,
      );
    }
    throw new StackProblem(
      `The directory ${directory} (${variable}) cannot be written (${code}); make it writable for this user or set ${variable} to another one.`,
    );
  }
}

/** Refuses a disk on which Postgres would run out of space soon. */
export function requireSpace(directory: string, variable: string, floorMb = DISK_FLOOR_MB): void {
  const disk = statfsSync(directory);
  const freeMb = Math.floor((disk.bavail * disk.bsize) / (1024 * 1024));
  if (freeMb < floorMb) {
    throw new StackProblem(
      `The disk that holds ${directory} (${variable}) has ${freeMb} MB left, but Sluice needs at least ${floorMb} MB; ` +
        `free some space or set ${variable} to a directory on another disk.`,
    );
  }
}

/** The code of the error when listening on the port; undefined if the port is free. */
function portError(port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** A port that is free at the moment. */
export function freePort(host = '127.0.0.1'): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = net.createServer();
    server.once('error', reject);
    server.listen({ port: 0, host }, () => {
      const { port } = server.address() as net.AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Throws a StackProblem if the port is not free. `variable` is the setting that changes the port. */
export async function requireFreePort(port: number, variable: string, host = '127.0.0.1'): Promise<void> {
  const code = await portError(port, host);
  if (code === undefined) return;
  if (code === 'EADDRINUSE') {
    throw new StackProblem(
      `Port ${port} (${variable}) is in use by another program; free it or set ${variable} to another one.`,
    );
  }
  if (code === 'EACCES') {
    throw new StackProblem(
      `This user may not open port ${port} (${variable}). Set ${variable} to a port above 1023.`,
    );
  }
  throw new StackProblem(
    `Sluice cannot open port ${port} (${variable}) on ${host}: ${code}. Check ${variable} and SLUICE_HOST.`,
  );
}
