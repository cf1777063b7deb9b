import { readFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import os from 'node:os';
import type { ClientBase } from 'pg';

/** So much lower is the priority of a Postgres process whose queries may take long than that of the others. */
const NICE = 10;

interface Connected {
  /** The process id of the server's end, on the machine where Postgres runs. */
  processID: number;
  connection: { stream: Socket };
}

/**
 * Lowers the priority of the Postgres process at the other end, if it runs on this machine, so that expensive queries
 * take the processors from requests as little as possible. Linux only, and only where this process may do it.
 */
export async function lowerPriority(client: ClientBase): Promise<void> {
  const { processID: pid, connection } = client as unknown as Connected;
  const port = connection.stream.localPort;
  if (process.platform !== 'linux' || port === undefined) return;
  try {
    // Postgres may run elsewhere, in a container too, and then the number belongs to somebody else. It names the port
    // of its client in the title of the process.
    const title = await readFile(`/proc/${pid}/cmdline`, 'utf8');
    if (title.startsWith('postgres:') && title.includes(`(${port})`)) os.setPriority(pid, NICE);
  } catch {
    // There is no such process here, or it belongs to another user.
  }
}
