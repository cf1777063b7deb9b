// Proves that tests prove something: `npm run mutations` changes one thing in a copy of the sources, runs the test that
// claims to protect it, and expects that test to fail. Arguments choose mutations by a part of their name or of
// the path of their file.
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { MUTATIONS, type Mutation } from '../test/mutations/mutations.ts';

const root = path.dirname(import.meta.dirname);

/** What jest reports about the tests of one file, or of several. */
interface Report {
  numPassedTests: number;
  numFailedTests: number;
  /** Files that could not be loaded. Such a failure proves nothing. */
  numRuntimeErrorTestSuites: number;
  testResults: { message: string; assertionResults: { fullName: string; status: string }[] }[];
}

/** Milliseconds that `eventually` waits for what a mutation may keep from coming about. Unchanged, it takes seconds. */
const TEST_PATIENCE = '90000';

/** A test that takes longer has neither noticed nor missed anything. */
const LONGEST_TEST = 10 * 60_000;

const stopping = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort());

/** Copies the sources of the checkout, as they are now, into a directory of their own. */
function copySources(): string {
  const copy = mkdtempSync(path.join(tmpdir(), 'sluice-mutations-'));
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    maxBuffer: 64 * 1024 * 1024,
  });
  for (const file of listed.toString().split('\0').filter(Boolean)) {
    mkdirSync(path.dirname(path.join(copy, file)), { recursive: true });
    cpSync(path.join(root, file), path.join(copy, file), { force: true });
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

/** Runs tests in the copy. Undefined: jest ended without a report, or has not ended in time. */
async function runTests(copy: string, { test, named }: Mutation): Promise<Report | undefined> {
  const file = path.join(copy, '.mutation-report.json');
  rmSync(file, { force: true });
  const child = spawn(
    process.execPath,
    [
      path.join(copy, 'node_modules/jest/bin/jest.js'),
      ...['--rootDir', copy, '--config', path.join(copy, 'jest.config.mjs')],
      // A test that fails may leave a server open, which would keep jest from ending.
      ...['--ci', '--silent', '--forceExit', '--json', '--outputFile', file],
      ...(named === undefined ? [] : ['--testNamePattern', named]),
      test,
    ],
    { cwd: copy, stdio: 'ignore', env: { ...process.env, NODE_NO_WARNINGS: '1', TEST_PATIENCE } },
  );
  const stop = () => child.kill('SIGTERM');
  const limit = setTimeout(stop, LONGEST_TEST);
  stopping.signal.addEventListener('abort', stop);
  await new Promise((resolve) => child.on('close', resolve));
  stopping.signal.removeEventListener('abort', stop);
  clearTimeout(limit);
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Report;
  } catch {
    return undefined;
  }
}

/** Returns the source with the mutation in it. Refuses a mutation whose text is not there exactly once. */
function mutated(source: string, { name, file, from, to }: Mutation): string {
  const found = source.split(from).length - 1;
  if (found !== 1) {
    throw new Error(`"${name}" no longer applies: its text is in ${file} ${found} times instead of once`);
  }
  return source.replace(from, () => to);
}

/** Answers what is wrong with a mutation. Undefined: the test noticed it, or it is harmless and the test passed. */
async function check(copy: string, mutation: Mutation): Promise<string | undefined> {
  const { file, harmless = false } = mutation;
  const place = path.join(copy, file);
  const source = readFileSync(place, 'utf8');
  const report = await (async () => {
    writeFileSync(place, mutated(source, mutation));
    try {
      return await runTests(copy, mutation);
    } finally {
      writeFileSync(place, source);
    }
  })();
  if (!report) return 'jest ended without a report, or did not end';
  if (report.numRuntimeErrorTestSuites > 0 && report.numFailedTests === 0) {
    return `the test could not be loaded: ${report.testResults[0]?.message.slice(0, 300)}`;
  }
  if (report.numPassedTests + report.numFailedTests === 0) return 'no test has this name';
  if (harmless) return report.numFailedTests === 0 ? undefined : 'a harmless mutation was noticed';
  return report.numFailedTests > 0 ? undefined : 'the test did not notice it';
}

const chosen = process.argv.slice(2);
const mutations = MUTATIONS.filter(
  ({ name, file }) => chosen.length === 0 || chosen.some((one) => name.includes(one) || file.includes(one)),
);
if (mutations.length === 0) throw new Error(`No mutation has ${chosen.join(' or ')} in its name or file.`);
const copy = copySources();
const faults: string[] = [];
try {
  // Mutations that no longer apply are told of at once, not after minutes.
  const stale = mutations.flatMap((mutation) => {
    try {
      mutated(readFileSync(path.join(copy, mutation.file), 'utf8'), mutation);
      return [];
    } catch (error) {
      return [(error as Error).message];
    }
  });
  if (stale.length > 0) throw new Error(stale.join('\n'));
  for (const [index, mutation] of mutations.entries()) {
    const started = Date.now();
    const fault = await check(copy, mutation);
    if (stopping.signal.aborted) throw new Error('Stopped before all mutations were tried.');
    const seconds = Math.round((Date.now() - started) / 1000);
    const verdict = fault ?? (mutation.harmless ? 'harmless, as expected' : 'noticed');
    console.log(`${index + 1}/${mutations.length} ${mutation.name}: ${verdict} (${seconds} s)`);
    if (fault) faults.push(`${mutation.name}: ${fault} (${mutation.test})`);
  }
} finally {
  rmSync(copy, { recursive: true, force: true });
}
for (const fault of faults) console.error(`FAILED ${fault}`);
console.log(`${mutations.length - faults.length} passed, ${faults.length} failed`);
process.exit(faults.length === 0 ? 0 : 1);
