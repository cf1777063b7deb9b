// `npm test` runs the formatter, the linter and the type check, and then all tests, with a real Postgres and a real
// Temporal server. Arguments go to jest (`npm test -- test/api`). `--long` adds the tests that take minutes.
import { spawn } from 'node:child_process';
import path from 'node:path';

const root = path.dirname(import.meta.dirname);
const bin = (name: string) => path.join(root, 'node_modules', '.bin', name);

function run(command: string, args: string[], env: NodeJS.ProcessEnv = process.env): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', env });
    const forward = (signal: NodeJS.Signals) => child.kill(signal);
    process.on('SIGINT', forward);
    process.on('SIGTERM', forward);
    child.on('error', reject);
    child.on('close', (code) => {
      process.off('SIGINT', forward);
      process.off('SIGTERM', forward);
      resolve(code ?? 1);
    });
  });
}

const args = process.argv.slice(2);
const long = args.includes('--long');
const jestArguments = args.filter((argument) => argument !== '--long');

const lint = await run(bin('biome'), ['check', '.']);
const types = await run(bin('tsc'), []);
const jest = await run(
  process.execPath,
  ['--experimental-vm-modules', path.join(root, 'node_modules/jest/bin/jest.js'), ...jestArguments],
  {
    ...process.env,
    NODE_NO_WARNINGS: '1',
    TEST_LONG: long ? '1' : '',
  },
);
process.exit(lint || types || jest);
