import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync } from 'node:fs';
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { loadConfig } from '../../config.ts';
import { tryLock } from '../../stack/file-lock.ts';
import { goInstall } from '../../stack/go-install.ts';

const VERSION = '1.8.0';
const MODULE = `github.com/versity/versitygw/cmd/versitygw@v${VERSION}`;
/** Building it takes about three minutes on two cores, once per machine. */
export const BUILD_MILLISECONDS = 1_200_000;

const execute = promisify(execFile);

async function works(program: string): Promise<boolean> {
  return execute(program, ['--version'], { timeout: 20_000 }).then(
    () => true,
    () => false,
  );
}

/** The S3 server of tests and benchmarks, built into the cache directory whole or not at all, by one process. */
async function findVersitygw(): Promise<string> {
  const { SLUICE_CACHE_DIR } = loadConfig({ SLUICE_CACHE_DIR: process.env.SLUICE_CACHE_DIR });
  const folder = path.join(SLUICE_CACHE_DIR, 'bin');
  const cached = path.join(folder, `versitygw-${VERSION}`);
  const report = (line: string) => void process.stderr.write(`${line}\n`);
  for (;;) {
    if (existsSync(cached) && (await works(cached))) return cached;
    mkdirSync(folder, { recursive: true });
    const { lock } = tryLock(`${cached}.lock`);
    if (!lock) {
      await pause(200);
      continue;
    }
    try {
      if (existsSync(cached) && (await works(cached))) return cached;
      for (const entry of await readdir(folder)) {
        if (entry.startsWith('versitygw.partial-')) await rm(path.join(folder, entry), { recursive: true });
      }
      report(
        'Building versitygw, the S3 server of tests and benchmarks, with Go (once, about 3 minutes on 2 cores) …',
      );
      const partial = await mkdtemp(path.join(folder, 'versitygw.partial-'));
      try {
        const options = { module: MODULE, program: 'versitygw', folder: partial, report, env: process.env };
        await rename(await goInstall(options), cached);
      } finally {
        await rm(partial, { recursive: true, force: true });
      }
    } finally {
      lock.release();
    }
  }
}

export const CREDENTIALS = { accessKeyId: 'test-access-key', secretAccessKey: 'test-secret-key-9d2f' };

export interface RunningVersitygw {
  endpoint: string;
  /** Of the server itself. */
  pid: number;
  stop(): Promise<void>;
}

/** A server with a directory of its own; both are gone when it is stopped, or when this process ends. */
export async function startVersitygw(port: number): Promise<RunningVersitygw> {
  const program = await findVersitygw();
  const folder = mkdtempSync(path.join(tmpdir(), 'sluice-test-s3-'));
  mkdirSync(path.join(folder, 'data'));
  // When the channel closes, however this process ended, the shell ends the server and removes its files.
  const script =
    '"$@" >/dev/null & server=$!; echo $server; cat >/dev/null; exec 2>/dev/null; kill -9 $server; wait $server; rm -rf "$FOLDER"';
  const listen = ['--port', `127.0.0.1:${port}`, '--quiet', '--keep-alive'];
  const child = spawn('sh', ['-c', script, 'sh', program, ...listen, 'posix', `${folder}/data`], {
    env: {
      PATH: process.env.PATH,
      FOLDER: folder,
      ROOT_ACCESS_KEY: CREDENTIALS.accessKeyId,
      ROOT_SECRET_KEY: CREDENTIALS.secretAccessKey,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  const stop = async () => {
    const gone = child.exitCode === null ? once(child, 'exit') : undefined;
    child.stdin.end();
    await gone;
  };
  const [said] = (await once(child.stdout, 'data')) as [Buffer];
  const endpoint = `http://127.0.0.1:${port}`;
  while (
    !(await fetch(endpoint).then(
      () => true,
      () => false,
    ))
  ) {
    if (child.exitCode !== null) throw new Error('versitygw ended; what it said stands above');
    await pause(20);
  }
  return { endpoint, pid: Number(said), stop };
}
