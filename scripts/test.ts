// `npm test` runs the formatter, the linter and the type check beside all tests, with a real Postgres and a real Temporal
// server. Arguments go to jest (`npm test -- test/api/bodies`). The bare name of a folder of test/ means all tests in that
// folder (`npm test -- exports`). `--long` adds the tests that take minutes and, without other arguments, the mutations.
// With `--ci`, a few files that failed run once more, alone; what passes only then is named at the end.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { passedLater, runsAgain, type TestReport, withSecondRun } from './test-report.ts';

const root = path.dirname(import.meta.dirname);
const bin = (name: string) => path.join(root, 'node_modules', '.bin', name);

interface Ended {
  code: number;
  /** The output of the command. Empty if it printed to the terminal directly. */
  output: string;
}

function run(
  command: string,
  args: string[],
  { env = process.env, quiet = false }: { env?: NodeJS.ProcessEnv; quiet?: boolean } = {},
): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: quiet ? 'pipe' : 'inherit', env });
    const pieces: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece) => pieces.push(piece));
    const forward = (signal: NodeJS.Signals) => child.kill(signal);
    process.on('SIGINT', forward);
    process.on('SIGTERM', forward);
    child.on('error', reject);
    child.on('close', (code) => {
      process.off('SIGINT', forward);
      process.off('SIGTERM', forward);
      resolve({ code: code ?? 1, output: Buffer.concat(pieces).toString() });
    });
  });
}

/** Expands the name of a test folder, such as `exports` to test/exports. Other arguments go to jest unchanged. */
function forJest(argument: string): string {
  const isFolder = /^[\w-]+$/.test(argument) && existsSync(path.join(root, 'test', argument));
  return isFolder ? `test/${argument}/` : argument;
}

const args = process.argv.slice(2);
const long = args.includes('--long');
const jestArguments = args.filter((argument) => argument !== '--long').map(forJest);

const colors = process.stderr.isTTY ? { FORCE_COLOR: '1' } : {};
const quiet = { env: { ...process.env, ...colors }, quiet: true };
// The checks run beside the tests, and their output is printed at the end. The tests need the processors, so the types are
// checked in one thread: several ask for the same types again.
const checks = [run(bin('biome'), ['check', '.'], quiet), run(bin('tsc'), ['--singleThreaded'], quiet)];
const runJest = async (options: string[]): Promise<number> => {
  const jest = path.join(root, 'node_modules/jest/bin/jest.js');
  const env = { ...process.env, NODE_NO_WARNINGS: '1', TEST_LONG: long ? '1' : '' };
  return (await run(process.execPath, [jest, ...options], { env })).code;
};

/** Runs the tests. Runs the files that failed once more, and puts both reports together in the caller's file. */
async function runTwice(): Promise<number> {
  const folder = mkdtempSync(path.join(tmpdir(), 'test-report-'));
  try {
    const wanted = jestArguments
      .find((one) => one.startsWith('--outputFile='))
      ?.slice('--outputFile='.length);
    const [file, secondFile] = [wanted ?? path.join(folder, 'first.json'), path.join(folder, 'second.json')];
    const code = await runJest(
      wanted ? [...jestArguments, '--json'] : [...jestArguments, '--json', `--outputFile=${file}`],
    );
    if (code === 0 || !existsSync(file)) return code;
    const read = (name: string): TestReport => JSON.parse(readFileSync(name, 'utf8'));
    const first = read(file);
    const names = runsAgain(first);
    if (names.length === 0) return code;
    console.error(`\n${names.length} failed. They run once more, alone:\n  ${names.join('\n  ')}\n`);
    const secondCode = await runJest([
      '--ci',
      '--json',
      `--outputFile=${secondFile}`,
      '--runTestsByPath',
      ...names,
    ]);
    if (!existsSync(secondFile)) return code;
    const second = read(secondFile);
    writeFileSync(file, JSON.stringify(withSecondRun(first, second)));
    const later = passedLater(first, second);
    if (later.length > 0)
      console.error(`\nPassed only when run alone, which is a defect to mend:\n  ${later.join('\n  ')}\n`);
    return secondCode;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const jest = await (jestArguments.includes('--ci') ? runTwice() : runJest(jestArguments));
const [lint, types] = (await Promise.all(checks)) as [Ended, Ended];
for (const { code, output } of [lint, types]) if (code !== 0) process.stderr.write(output);
const mutations =
  long && jestArguments.length === 0
    ? (await run(process.execPath, [path.join(root, 'scripts/mutations.ts')])).code
    : 0;
process.exit(lint.code || types.code || jest || mutations);
