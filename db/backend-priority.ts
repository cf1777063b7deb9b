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
    if (!title.startsWith('postgres:') || !title.includes(`(${port})`)) return;
    os.setPriority(pid, NICE);
    await lowerGroup(pid);
  } catch {
    // There is no such process here, it belongs to another user, or this Linux has no groups.
  }
}
