import { spawn } from 'node:child_process';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { Command } from 'commander';
import { COMMANDS } from '../../cli/program.ts';
import { inherited } from '../support/programs.ts';

const ROOT = path.join(import.meta.dirname, '../..');
/** What takes long to load, and few commands need. */
const SLOW = [
  '@temporalio',
  '@grpc',
  '@azure',
  '@aws-sdk',
  'undici',
  '@posthog/hogvm',
  'fastify',
  'prom-client',
];

/** Prints the path of each module that a process loads. */
const LISTING = `
import { registerHooks } from 'node:module';
registerHooks({
  load(url, context, next) {
    process.stderr.write(url + '\\n');
    return next(url, context);
  },
});`;

function modulesOf(...args: string[]): Promise<string[]> {
  const hook = `data:text/javascript,${encodeURIComponent(LISTING)}`;
  const child = spawn(process.execPath, ['--import', hook, 'cli/main.ts', ...args], {
    cwd: ROOT,
    env: inherited(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let text = '';
  child.stderr.on('data', (chunk) => {
    text += chunk;
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) =>
      code === 0 ? resolve(text.split('\n')) : reject(new Error(`exit code ${code}: ${text.slice(-500)}`)),
    );
  });
}

const slowOf = (modules: readonly string[]) =>
  SLOW.filter((name) => modules.some((one) => one.includes(`/node_modules/${name}`)));

describe('What a command loads', () => {
  it.each([...COMMANDS])(
    '$names: the file adds the commands under whose names it is listed, and no others',
    async ({ names, load }) => {
      const program = new Command();
      (await load())(program, async () => []);
      expect(program.commands.map((one) => one.name())).toEqual(names);
    },
  );

  it('a command loads its own file only, and nothing that takes long and that it does not need', async () => {
    const files = COMMANDS.flatMap(({ names }) => (names.includes('doctor') ? [] : [names[0] as string]));
    const found = new Map<string, string[]>();
    for (const name of files) {
      const modules = await modulesOf(name, '--help');
      expect(modules.length).toBeGreaterThan(50);
      found.set(name, [...slowOf(modules), ...modules.filter((one) => one.endsWith('/products.ts'))]);
    }
    expect([...found].filter(([, slow]) => slow.length > 0)).toEqual([]);
  });

  it('the check itself sees what a command loads', async () => {
    const modules = await modulesOf('doctor', '--help');
    expect(slowOf(modules)).toEqual(['@temporalio', '@grpc']);
    expect(modules.some((one) => one.endsWith('/cli/commands/doctor.ts'))).toBe(true);
    expect(modules.some((one) => one.endsWith('/cli/commands/query.ts'))).toBe(false);
  });

  it('the help loads all files, because it lists all commands', async () => {
    const modules = await modulesOf('--help');
    for (const name of await readdir(path.join(ROOT, 'cli/commands')))
      expect(modules).toContainEqual(expect.stringMatching(`/cli/commands/${name}$`));
  });
});
