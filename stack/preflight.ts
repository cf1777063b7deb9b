import { randomUUID } from 'node:crypto';
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { StackProblem } from './problem.ts';

/** Below this, Postgres would soon stop for want of space: its write-ahead log alone takes segments of 16 MB. */
export const DISK_FLOOR_MB = 300;

/** Creates the directory if need be and writes a byte into it, or says in one sentence why that is impossible. */
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
      `The disk that holds ${directory} (${variable}) has ${freeMb} MB left, Sluice needs at least ${floorMb} MB; ` +
        `free some space or set ${variable} to a directory on another disk.`,
    );
  }
}

/** The code of the error that listening on the port gives, or undefined if it can be had. */
function portError(port: number, host: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
    server.listen({ port, host, exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}

/** A port that nothing listens on at this moment. */
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

/** Refuses a port that cannot be had. `variable` is the setting that moves Sluice to another port. */
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
      `Port ${port} (${variable}) may not be opened by this user; set ${variable} to one above 1023.`,
    );
  }
  throw new StackProblem(
    `Port ${port} (${variable}) cannot be opened on ${host} (${code}); check ${variable} and SLUICE_HOST.`,
  );
}
