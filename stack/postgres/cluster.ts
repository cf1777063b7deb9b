import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { appendFile, mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { StackProblem } from '../problem.ts';
import { isTaken, processStart, stopOrphan, waitUntilGone } from '../process.ts';
import type { PostgresBinaries } from './binaries.ts';
import { giveTo, invocation, type RunAs } from './run-as.ts';

const execute = promisify(execFile);
const PASSWORD_FILE = 'sluice-password';
const SETTINGS_FILE = 'sluice.conf';

const REMOVE = { recursive: true, force: true, maxRetries: 10, retryDelay: 50 };

/** What the Postgres programs see of the environment: no PG* variable of the user may change what they do. */
export const POSTGRES_ENV = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' };

/**
 * Makes the cluster under another name and renames it when it is complete, so that a start that was interrupted
 * leaves nothing that looks like a database. The password lies in the cluster, so that both come and go together.
 */
export async function createCluster(
  cluster: string,
  binaries: PostgresBinaries,
  runAs: RunAs,
  durable: boolean,
): Promise<void> {
  const parent = path.dirname(cluster);
  const prefix = `${path.basename(cluster)}.partial-`;
  // The caller holds the lock of the data directory: whatever is here was left by a start that did not finish.
  // The initdb of a start that was just killed may still be writing, and fails as soon as its files vanish.
  for (const entry of await readdir(parent)) {
    if (entry.startsWith(prefix)) await rm(path.join(parent, entry), REMOVE);
  }
  const partial = path.join(parent, `${prefix}${randomBytes(6).toString('hex')}`);
  const passwordFile = `${partial}.password`;
  const password = randomBytes(24).toString('base64url');
  try {
    await mkdir(partial, { mode: 0o700 });
    await giveTo(runAs, partial);
    await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
    await giveTo(runAs, passwordFile);
    const { command, args, ...ids } = invocation(runAs, path.join(binaries.home, 'bin', 'initdb'), [
      `--pgdata=${partial}`,
      '--username=postgres',
      `--pwfile=${passwordFile}`,
      '--auth-local=reject',
      '--auth-host=scram-sha-256',
      '--encoding=UTF8',
      '--locale=C',
      '--locale-provider=builtin',
      '--builtin-locale=C.UTF-8',
      '--data-checksums',
      '--no-instructions',
      ...(durable ? [] : ['--no-sync']),
    ]);
    await execute(command, args, { ...ids, cwd: parent, env: POSTGRES_ENV });
    // Before ALTER SYSTEM, after the defaults: Sluice's settings can be changed by the operator.
    await appendFile(path.join(partial, 'postgresql.conf'), `\ninclude_if_exists = '${SETTINGS_FILE}'\n`);
    await rename(passwordFile, path.join(partial, PASSWORD_FILE));
    await rename(partial, cluster);
  } catch (error) {
    await rm(partial, REMOVE);
    const said = (error as { stderr?: string }).stderr?.trim() || (error as Error).message;
    if (/no space left|disk quota/i.test(said)) {
      throw new StackProblem(
        `The disk that holds ${parent} (SLUICE_DATA_DIR) became full while Postgres made its database; free some space ` +
          'or set SLUICE_DATA_DIR to a directory on another disk.',
      );
    }
    throw new StackProblem(`Postgres could not make its database in ${cluster}:\n  ${said}`, {
      cause: error,
    });
  } finally {
    await rm(passwordFile, { force: true });
  }
}

export async function readPassword(cluster: string): Promise<string> {
  const file = path.join(cluster, PASSWORD_FILE);
  try {
    return (await readFile(file, 'utf8')).trim();
  } catch (error) {
    throw new StackProblem(
      `The password of the embedded Postgres cannot be read from ${file} (${(error as NodeJS.ErrnoException).code}); ` +
        'restore that file from a backup, or remove the directory to start with an empty database.',
    );
  }
}

export async function writeSettings(
  cluster: string,
  settings: Record<string, string>,
  runAs: RunAs,
): Promise<void> {
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`);
  const file = path.join(cluster, SETTINGS_FILE);
  await writeFile(
    `${file}.new`,
    `# Written by Sluice at every start. Use ALTER SYSTEM to change settings.\n${lines.join('\n')}\n`,
    { mode: 0o600 },
  );
  await giveTo(runAs, `${file}.new`);
  await rename(`${file}.new`, file);
}

/** A cluster of another major version cannot be opened; Postgres says so only in its log. */
export function requireVersion(cluster: string, major: number): void {
  const file = path.join(cluster, 'PG_VERSION');
  const found = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  if (found === String(major)) return;
  throw new StackProblem(
    found === undefined
      ? `The directory ${cluster} is not a Postgres database (it has no PG_VERSION file); move it away or set SLUICE_DATA_DIR to another directory.`
      : `The database in ${cluster} was made by Postgres ${found}, but this Sluice brings Postgres ${major}; dump it with ` +
          `the Sluice version that made it ("npx sluice backup") and restore it here, or set SLUICE_DATA_DIR to another directory.`,
  );
}

/** Processes that work in the cluster: every process of a Postgres server has it as its working directory. */
function processesIn(cluster: string): number[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return pid !== process.pid && readlinkSync(`/proc/${pid}/cwd`) === cluster;
      } catch {
        return false;
      }
    });
}

async function commandOf(pid: number): Promise<string> {
  if (process.platform === 'linux') {
    return readFile(`/proc/${pid}/cmdline`, 'utf8').then(
      (text) => text.replaceAll('\0', ' '),
      () => '',
    );
  }
  return execute('ps', ['-o', 'command=', '-p', String(pid)]).then(
    ({ stdout }) => stdout,
    () => '',
  );
}

/**
 * Clears what a killed supervisor left: a server that still runs is shut down (it knows nothing of this start's
 * port and settings), and a lock file whose process number is in use is removed: by another program that was given
 * the number since, or by a killed server that its parent has not buried yet. Postgres would take either for a running
 * server. With an unused number Postgres's own check is the better one: it also sees children of a dead server whose
 * working directory this process may not read.
 */
export async function clearLeftovers(cluster: string, report: (line: string) => void): Promise<void> {
  const file = path.join(cluster, 'postmaster.pid');
  const recorded = await readFile(file, 'utf8').catch(() => '');
  const pid = Number.parseInt(recorded, 10);
  const started = pid > 0 ? processStart(pid) : undefined;
  if (started !== undefined && (await commandOf(pid)).includes(cluster)) {
    report(`Stopping the Postgres (process ${pid}) that an earlier start left running …`);
    await stopOrphan(pid, started, [
      { signal: 'SIGINT', milliseconds: 20_000 },
      { signal: 'SIGQUIT', milliseconds: 10_000 },
    ]);
    if (processStart(pid) === started) {
      throw new StackProblem(
        `A Postgres (process ${pid}) still runs in ${cluster} and does not stop; end it ("kill -QUIT ${pid}") and start again.`,
      );
    }
  }
  // The children of a killed server end by themselves within moments; until then a new one must not start.
  for (const child of processesIn(cluster)) {
    const since = processStart(child);
    if (since !== undefined && !(await waitUntilGone(child, since, 10_000))) {
      throw new StackProblem(
        `Process ${child} still works in ${cluster}; if it is a part of an earlier Postgres, end it ("kill -QUIT ${child}") and start again.`,
      );
    }
  }
  if (pid > 0 && isTaken(pid)) await rm(file, { force: true });
}
