import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import { promisify } from 'node:util';
import { StackProblem } from '../problem.ts';

const execute = promisify(execFile);

/**
 * The user that runs the Postgres programs, which refuse to run as root.
 * - `self`: the current, unprivileged user.
 * - `namespace`: root, in a user namespace where root has the name "nobody". The files still belong to root, so
 *   this works below /root and in every other directory that only root may enter.
 * - `account`: another account, which must own the cluster and be able to reach its directory.
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
  // unshare replaces itself with the program, so the process number stays the same.
  if (runAs.kind === 'namespace') return { command: 'unshare', args: [...NAMESPACE, command, ...args] };
  return { command, args, uid: runAs.uid, gid: runAs.gid };
}

/** Makes the account that runs Postgres the owner of a file or directory. */
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
  /** Does not use a user namespace, as on a machine without them. */
  withoutNamespace?: boolean;
}

/** Chooses the user that runs Postgres. An existing cluster keeps its owner. */
export async function chooseRunAs(question: RunAsQuestion): Promise<RunAs> {
  const owner = statSync(question.cluster, { throwIfNoEntry: false });
  const user = process.getuid?.();
  if (user !== 0) {
    if (!owner || owner.uid === user) return { kind: 'self' };
    throw new StackProblem(
      `The database in ${question.cluster} belongs to the user with the id ${owner.uid}, but the user with the id ${user} started ` +
        'Sluice. Start it as the owner, or set SLUICE_DATA_DIR to another directory.',
    );
  }
  const candidates: RunAs[] = [];
  if (owner && owner.uid !== 0) {
    candidates.push({ kind: 'account', name: `number ${owner.uid}`, uid: owner.uid, gid: owner.gid });
  } else {
    if (!question.withoutNamespace) candidates.push({ kind: 'namespace' });
    // A cluster that belongs to root keeps its owner, so another account can only run a new cluster.
    if (!owner) candidates.push(...accounts().map((one) => ({ kind: 'account' as const, ...one })));
  }
  for (const candidate of candidates) {
    if (await canReach(candidate, question.program, question.dataDir)) return candidate;
  }
  throw new StackProblem(
    `Postgres refuses to run as root, and no other way to run it in ${question.dataDir} works here ` +
      '(user namespaces are switched off, and no other account may enter that directory and the cache directory). ' +
      'Either start Sluice as an ordinary user, set SLUICE_DATA_DIR and SLUICE_CACHE_DIR to directories that everybody may ' +
      'enter (for example below /var/lib), or set DATABASE_URL to a Postgres of your own.',
  );
}
