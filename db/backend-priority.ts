import { readFile, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import os from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import type { ClientBase } from 'pg';

/** So much lower is the priority of a Postgres process whose queries may take long than that of the others. */
const NICE = 10;
/** How often the change of a group is tried. */
const TURNS = 20;

interface Connected {
  /** The process id of the server's end, on the machine where Postgres runs. */
  processID: number;
  connection: { stream: Socket };
}

/**
 * Lowers the priority of the group of a process that leads a session, as each process of Postgres does. Where Linux
 * shares the processors between sessions ("autogroups"), the priority of a process counts only within its session. The
 * group is another process' too if `pid` does not lead it, and then it stays as it is.
 */
async function lowerGroup(pid: number): Promise<void> {
  const session = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ')[3];
  if (Number(session) !== pid) return;
  for (let turn = 0; turn < TURNS; turn += 1) {
    try {
      return await writeFile(`/proc/${pid}/autogroup`, String(NICE));
    } catch (error) {
      // Linux takes ten changes a second from all users but root.
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error;
      await pause(100 + Math.random() * 100, undefined, { ref: false });
    }
  }
}

/** A process of Postgres that serves a client. */
export interface Backend {
  /** As Postgres knows it. The number is somebody else's on this machine if Postgres runs elsewhere, in a container too. */
  pid: number;
  /** The port of its client, as Postgres knows it. */
  port: number;
}

/** Returns whether a process of this machine is that of Postgres. It names the port of its client in its title. */
async function isHere({ pid, port }: Backend): Promise<boolean> {
  const title = await readFile(`/proc/${pid}/cmdline`, 'utf8');
  return title.startsWith('postgres:') && title.includes(`(${port})`);
}

/**
 * Lowers the priority of a process of Postgres, if it runs on this machine, so that expensive queries take the processors
 * from requests as little as possible. Linux only, and only where this process may do it.
 */
export async function makeWay(backend: Backend): Promise<void> {
  if (process.platform !== 'linux') return;
  try {
    if (!(await isHere(backend))) return;
    os.setPriority(backend.pid, NICE);
    await lowerGroup(backend.pid);
  } catch {
    // There is no such process here, it belongs to another user, or this Linux has no groups.
  }
}

/** Returns the process at the other end of a connection. Undefined: the connection is closed, or has no port. */
export function backendOf(client: ClientBase): Backend | undefined {
  const { processID: pid, connection } = client as unknown as Connected;
  const port = connection.stream.localPort;
  return port === undefined ? undefined : { pid, port };
}

/** Lowers the priority of the process at the other end of a connection. */
export async function lowerPriority(client: ClientBase): Promise<void> {
  const backend = backendOf(client);
  if (backend) await makeWay(backend);
}

/**
 * Returns how many bytes of memory a process of Postgres has for itself, without what all of them share. Undefined where
 * this cannot be known.
 */
export async function memoryOf(backend: Backend): Promise<number | undefined> {
  if (process.platform !== 'linux') return undefined;
  try {
    if (!(await isHere(backend))) return undefined;
    const status = await readFile(`/proc/${backend.pid}/status`, 'utf8');
    const kilobytes = /^RssAnon:\s+(\d+) kB$/m.exec(status)?.[1];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}
