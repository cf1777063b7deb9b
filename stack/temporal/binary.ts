import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { tryLock } from '../file-lock.ts';
import { goInstall } from '../go-install.ts';
import { requireSpace, requireWritable } from '../preflight.ts';
import { type Report, StackProblem } from '../problem.ts';
import { downloadTemporal, TEMPORAL_VERSION, type TemporalArchive, temporalArchive } from './download.ts';

/** Go checks it against its checksum database. Later versions have replace directives in their go.mod. */
const TEMPORAL_MODULE = `github.com/temporalio/cli/cmd/temporal@v${TEMPORAL_VERSION}`;

/** Builds the Temporal CLI into `folder` with the machine's Go. This takes about four minutes on two cores. */
function buildTemporal(
  folder: string,
  report: Report,
  env: NodeJS.ProcessEnv,
  signal?: AbortSignal,
): Promise<string> {
  return goInstall({ module: TEMPORAL_MODULE, program: 'temporal', folder, report, env, signal });
}

const execute = promisify(execFile);
/** The space for the archive, the program and Go's intermediate files. */
const SPACE_MB = 1_000;

interface TemporalSearch {
  /** The directory SLUICE_CACHE_DIR. The program is `bin/temporal` in it. */
  cacheDir: string;
  report?: Report;
  /** The environment. Its PATH is searched; Go gets all of it. */
  env?: NodeJS.ProcessEnv;
  /** The archive to download. By default the one for this machine. */
  archive?: TemporalArchive;
  signal?: AbortSignal;
}

function onPath(name: string, env: NodeJS.ProcessEnv): string | undefined {
  return (env.PATH ?? '')
    .split(path.delimiter)
    .filter(Boolean)
    .map((folder) => path.join(folder, name))
    .find((file) => {
      try {
        accessSync(file, constants.X_OK);
        return true;
      } catch {
        return false;
      }
    });
}

/** Whether the program works as a Temporal CLI. A file of that name may be another program, or incomplete. */
async function works(program: string): Promise<boolean> {
  return execute(program, ['--version'], { timeout: 20_000 }).then(
    ({ stdout }) => stdout.includes('temporal version'),
    () => false,
  );
}

/**
 * Finds the Temporal CLI, which contains the server. It looks in this order: PATH, the cache, the
 * download of its release, `go install`. The last two put the program into the cache, in one step and by one process only.
 */
export async function findTemporal(search: TemporalSearch): Promise<string> {
  const env = search.env ?? process.env;
  const report = search.report ?? (() => undefined);
  const installed = onPath('temporal', env);
  if (installed && (await works(installed))) return installed;
  const folder = path.join(search.cacheDir, 'bin');
  const cached = path.join(folder, 'temporal');
  if (existsSync(cached) && (await works(cached))) return cached;

  requireWritable(folder, 'SLUICE_CACHE_DIR');
  let nextLine = 0;
  for (;;) {
    search.signal?.throwIfAborted();
    const { lock, heldBy } = tryLock(`${cached}.lock`);
    if (lock) {
      try {
        // The previous owner of the lock may have put it there.
        if (existsSync(cached) && (await works(cached))) return cached;
        await rm(cached, { force: true });
        await obtain(cached, search.archive ?? temporalArchive(process), env, report, search.signal);
        return cached;
      } finally {
        lock.release();
      }
    }
    if (Date.now() >= nextLine) {
      report(`  waiting for process ${heldBy}, which downloads or builds Temporal …`);
      nextLine = Date.now() + 5_000;
    }
    await pause(200);
  }
}

async function obtain(
  cached: string,
  archive: TemporalArchive | undefined,
  env: NodeJS.ProcessEnv,
  report: Report,
  signal: AbortSignal | undefined,
): Promise<void> {
  const folder = path.dirname(cached);
  requireSpace(folder, 'SLUICE_CACHE_DIR', SPACE_MB);
  for (const entry of await readdir(folder)) {
    // A killed process left it. This process holds the lock, so nobody uses it.
    if (entry.startsWith('temporal.partial-')) await rm(path.join(folder, entry), { recursive: true });
  }
  const partial = await mkdtemp(path.join(folder, 'temporal.partial-'));
  const failures: string[] = [];
  try {
    const attempts = [
      {
        name: 'the download',
        run: () => {
          if (!archive) throw new Error('Temporal publishes no program for this machine');
          report(`Downloading Temporal (once, about 60 MB) from ${new URL(archive.url).host} …`);
          return downloadTemporal(partial, report, archive);
        },
      },
      {
        name: 'the build',
        run: () => {
          if (!onPath('go', env)) throw new Error('there is no Go on this machine');
          report('Building Temporal with Go (once, about 4 minutes on 2 cores) …');
          return buildTemporal(partial, report, env, signal);
        },
      },
    ];
    for (const attempt of attempts) {
      try {
        await mkdir(partial, { recursive: true });
        const program = await attempt.run();
        if (!(await works(program))) throw new Error('the result is not a Temporal program for this machine');
        await rename(program, cached);
        return;
      } catch (error) {
        signal?.throwIfAborted();
        const reason = reasonOf(error);
        report(`  ${attempt.name} failed: ${reason}`);
        failures.push(`${attempt.name}: ${reason}`);
        await rm(partial, { recursive: true, force: true });
      }
    }
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
  throw new StackProblem(
    `Sluice found no Temporal server and could not get one (${failures.join('; ')}). Install the Temporal CLI so that ` +
      '"temporal" is on the PATH (https://docs.temporal.io/cli), or install Go, or set TEMPORAL_ADDRESS to a Temporal ' +
      'server of your own.',
  );
}

/** The reason of an error. fetch() hides it in `cause`. */
function reasonOf(error: unknown): string {
  const { message, cause } = error as Error & { cause?: Error & { code?: string } };
  if (message !== 'fetch failed' || !cause) return message.trim().split('\n').at(-1) as string;
  return cause.code ?? cause.message;
}
