import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { eventually } from './eventually.ts';

export interface ServerProcess {
  /** Of the server itself. */
  pid: number;
  stop(): Promise<void>;
}

interface ServerOptions {
  /** The program and its arguments. */
  command: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** Where it answers when it is ready. */
  url: string;
  /** A folder of its own, which is removed after it. */
  folder?: string;
}

/** When the channel closes, however this process ended, the shell ends the server and removes its files. */
const SCRIPT =
  '"$@" >/dev/null & server=$!; echo $server; cat >/dev/null; exec 2>/dev/null; kill -9 $server; wait $server; test -z "$FOLDER" || rm -rf "$FOLDER"';

/** Starts a server as a process of its own, and waits until it answers. It never outlives this process. */
export async function startServer({ command, env, url, folder }: ServerOptions): Promise<ServerProcess> {
  const child = spawn('sh', ['-c', SCRIPT, 'sh', ...command], {
    env: { PATH: process.env.PATH, ...(folder === undefined ? {} : { FOLDER: folder }), ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const stop = async () => {
    const gone = child.exitCode === null ? once(child, 'exit') : undefined;
    child.stdin.end();
    await gone;
  };
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  const pid = Number(said);
  await eventually(() =>
    fetch(url).then(
      () => true,
      () => {
        if (!isRunning(pid)) throw new Error(`${command[0]} ended; what it said stands above`);
        return false;
      },
    ),
  );
  return { pid, stop };
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
