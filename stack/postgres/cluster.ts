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

/** The environment of the Postgres programs. It has no PG* variables of the user, because those change what they do. */
export const POSTGRES_ENV = { PATH: process.env.PATH ?? '', LC_ALL: 'C', TZ: 'UTC' };

/**
 * Creates the cluster under another name and renames it when it is complete. An interrupted start therefore leaves
 * nothing that looks like a database. The password file is in the cluster's directory, so that the two stay together.
 */
export async function createCluster(
  cluster: string,
  binaries: PostgresBinaries,
  runAs: RunAs,
  durable: boolean,
): Promise<void> {
  const parent = path.dirname(cluster);
  const prefix = `${path.basename(cluster)}.partial-`;
  // The caller holds the lock of the data directory, so these files come from starts that did not finish. The initdb
  // of a start that was just killed may still be writing; it fails when its files disappear.
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
    // Sluice's settings override the defaults, and ALTER SYSTEM overrides Sluice's settings.
    await appendFile(path.join(partial, 'postgresql.conf'), `\ninclude_if_exists = '${SETTINGS_FILE}'\n`);
    await rename(passwordFile, path.join(partial, PASSWORD_FILE));
    await rename(partial, cluster);
  } catch (error) {
    await rm(partial, REMOVE);
    const said = (error as { stderr?: string }).stderr?.trim() || (error as Error).message;
    if (/no space left|disk quota/i.test(said)) {
      throw new StackProblem(
        `The disk that holds ${parent} (SLUICE_DATA_DIR) became full while Postgres created its database; free some space ` +
          'or set SLUICE_DATA_DIR to a directory on another disk.',
      );
    }
    throw new StackProblem(`Postgres could not create its database in ${cluster}:\n  ${said}`, {
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

/** Throws a StackProblem for a cluster of another major version. Postgres itself would explain that only in its log. */
export function requireVersion(cluster: string, major: number): void {
  const file = path.join(cluster, 'PG_VERSION');
  const found = existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined;
  if (found === String(major)) return;
  throw new StackProblem(
    found === undefined
      ? `The directory ${cluster} is not a Postgres database (it has no PG_VERSION file); move it away or set SLUICE_DATA_DIR to another directory.`
      : `The database in ${cluster} was created by Postgres ${found}, but this version of Sluice contains Postgres ${major}. Back it ` +
          'up with the version of Sluice that created it ("npx sluice backup") and restore the backup here, or set ' +
          'SLUICE_DATA_DIR to another directory.',
  );
}

/** Processes whose working directory is the cluster: every process of a Postgres server works there. */
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
 * Clears what a killed supervisor left. A server that still runs is shut down, because it does not have the port and
 * settings of this start. The lock file is removed if its process number belongs to something else: to another program,
 * or to a killed server that its parent has not collected yet. Postgres would take either for a running server. If the
 * number is unused, the lock file stays, because Postgres's own check is better: it also sees children of a dead server
 * whose working directory this process may not read.
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
        `A Postgres (process ${pid}) still runs in ${cluster} and does not stop. End it with "kill -QUIT ${pid}", then start Sluice again.`,
      );
    }
  }
  // The children of a killed server end on their own within moments. A new server must not start before that.
  for (const child of processesIn(cluster)) {
    const since = processStart(child);
    if (since !== undefined && !(await waitUntilGone(child, since, 10_000))) {
      throw new StackProblem(
        `Process ${child} still works in ${cluster}. If it belongs to an earlier Postgres, end it with "kill -QUIT ${child}", then start Sluice again.`,
      );
    }
  }
  if (pid > 0 && isTaken(pid)) await rm(file, { force: true });
}
