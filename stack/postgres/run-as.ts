import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import { promisify } from 'node:util';
import { StackProblem } from '../problem.ts';

const execute = promisify(execFile);

/**
 * As whom the Postgres programs run; they refuse to run as root.
 * - `self`: as the current, unprivileged user.
 * - `namespace`: as root outside, but in a user namespace in which root is called "nobody". Files stay root's, so
 *   this works below /root and in any other directory that only root may enter.
 * - `account`: as another account, which must own the data directory and be able to reach it.
 */
export type RunAs =
  | { kind: 'self' }
  | { kind: 'namespace' }
  | { kind: 'account'; uid: number; gid: number; name: string };

const NAMESPACE = ['-U', '--map-user=65534', '--map-group=65534', '--'];

export interface Invocation {
  command: string;
  args: string[];
  uid?: number;
  gid?: number;
}

export function invocation(runAs: RunAs, command: string, args: string[]): Invocation {
  if (runAs.kind === 'self') return { command, args };
  // unshare replaces itself by the program, so that the process number stays the same.
  if (runAs.kind === 'namespace') return { command: 'unshare', args: [...NAMESPACE, command, ...args] };
  return { command, args, uid: runAs.uid, gid: runAs.gid };
}

/** Gives a file or directory to the account that Postgres will run as. */
export async function giveTo(runAs: RunAs, place: string): Promise<void> {
  if (runAs.kind === 'account') await chown(place, runAs.uid, runAs.gid);
}

function accounts(): { name: string; uid: number; gid: number }[] {
  const lines = readFileSync('/etc/passwd', 'utf8').split('\n');
  return ['postgres', 'nobody'].flatMap((name) => {
    const fields = lines.map((line) => line.split(':')).find((one) => one[0] === name);
    return fields ? [{ name, uid: Number(fields[2]), gid: Number(fields[3]) }] : [];
  });
}

/** Whether `runAs` works on this machine and can run `program` and enter `directory`. */
async function canReach(runAs: RunAs, program: string, directory: string): Promise<boolean> {
  const { command, args, ...ids } = invocation(runAs, '/bin/sh', [
    '-c',
    'cd "$1" && "$2" --version',
    'sh',
    directory,
    program,
  ]);
  try {
    await execute(command, args, { ...ids, cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C' } });
    return true;
  } catch {
    return false;
  }
}

export interface RunAsQuestion {
  /** Program of Postgres that must be executable. */
  program: string;
  /** Directory that holds, or will hold, the cluster. */
  dataDir: string;
  /** The cluster, if it exists already. */
  cluster: string;
  /** Leaves the user namespace out: what a machine without user namespaces does. */
  withoutNamespace?: boolean;
}

/** Decides as whom Postgres runs; an existing cluster keeps its owner. */
export async function chooseRunAs(question: RunAsQuestion): Promise<RunAs> {
  const owner = statSync(question.cluster, { throwIfNoEntry: false });
  const user = process.getuid?.();
  if (user !== 0) {
    if (!owner || owner.uid === user) return { kind: 'self' };
    throw new StackProblem(
      `The database in ${question.cluster} belongs to user number ${owner.uid}, but Sluice was started by user number ${user}; ` +
        'start it as that user, or set SLUICE_DATA_DIR to another directory.',
    );
  }
  const candidates: RunAs[] = [];
  if (owner && owner.uid !== 0) {
    candidates.push({ kind: 'account', name: `number ${owner.uid}`, uid: owner.uid, gid: owner.gid });
  } else {
    if (!question.withoutNamespace) candidates.push({ kind: 'namespace' });
    // Files of root stay root's: an account is a way only for a cluster that does not exist yet.
    if (!owner) candidates.push(...accounts().map((one) => ({ kind: 'account' as const, ...one })));
  }
  for (const candidate of candidates) {
    if (await canReach(candidate, question.program, question.dataDir)) return candidate;
  }
  throw new StackProblem(
    `Postgres refuses to run as root, and no other way to run it in ${question.dataDir} works here ` +
      '(user namespaces are switched off, and no other account may enter that directory and the cache directory): ' +
      'start Sluice as an ordinary user, set SLUICE_DATA_DIR and SLUICE_CACHE_DIR to directories that everybody may enter ' +
      '(for example below /var/lib), or set DATABASE_URL to a Postgres of your own.',
  );
}
