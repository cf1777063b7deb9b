// Follows the recipes of CONTRIBUTING.md in a copy of the tree: the files that they name are there, and what they have written
// is found by everything that lists, checks and documents it.
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { FOLLOWED, type Followed } from './followed.ts';

const execute = promisify(execFile);
const root = path.resolve(import.meta.dirname, '../..');
const LEFT_OUT = new Set(['node_modules', '.git', '.sluice', 'coverage']);
const contributing = readFileSync(path.join(root, 'CONTRIBUTING.md'), 'utf8');

/** The text of a recipe, in one line. */
function recipeOf({ heading }: Pick<Followed, 'heading'>): string {
  const [, text] = contributing.split(`## ${heading}\n`);
  return (text?.split(/^## /m)[0] ?? '').replaceAll(/\s+/g, ' ');
}

/** The files and folders that a recipe names and that are to be there, without the places of new ones. */
const namedIn = (text: string): string[] =>
  [...text.matchAll(/`((?:[\w-]+\/)*[\w.-]+(?:\/|\.(?:ts|md|mjs)))`|\]\(([\w/.-]+)\)/g)]
    .map(([, code, link]) => (code ?? link) as string)
    .filter((name) => name.includes('/') || existsSync(path.join(root, name)) || /^[a-z]+\.ts$/.test(name));

/** Names of a part of each product, or of a file beside others, that stand for no single place. */
const RELATIVE = new Set([
  ...['rules/', 'rows/', 'reads/', 'runs/', 'commands/', 'no-op/'],
  ...['requests.ts', 'parts.ts', 'guarded-request.ts', 'statuses.ts', 'file-options.ts'],
]);
const BESIDE_DESTINATIONS = (name: string) => existsSync(path.join(root, 'destinations', name));

let copy: string;

beforeAll(() => {
  copy = mkdtempSync(path.join(tmpdir(), 'sluice-recipes-'));
  for (const name of readdirSync(root)) {
    if (!LEFT_OUT.has(name)) cpSync(path.join(root, name), path.join(copy, name), { recursive: true });
  }
  symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  for (const { files, changes } of FOLLOWED) {
    for (const { file, text } of files) {
      if (existsSync(path.join(copy, file))) throw new Error(`${file} is there already`);
      mkdirSync(path.dirname(path.join(copy, file)), { recursive: true });
      writeFileSync(path.join(copy, file), text);
    }
    for (const { file, from, to } of changes) {
      const text = readFileSync(path.join(copy, file), 'utf8');
      if (text.split(from).length !== 2)
        throw new Error(`${file} does not have ${JSON.stringify(from)} once`);
      writeFileSync(
        path.join(copy, file),
        text.replace(from, () => to),
      );
    }
  }
});
afterAll(() => rmSync(copy, { recursive: true, force: true }));

test('every recipe is followed', () => {
  const headings = [...contributing.matchAll(/^## (Adding .+)$/gm)].map(([, heading]) => heading);
  expect(FOLLOWED.map(({ heading }) => heading).sort()).toEqual(headings.sort());
});

describe.each(FOLLOWED.map((one): [string, Followed] => [one.heading, one]))('%s', (_heading, followed) => {
  const recipe = recipeOf(followed);

  test('names each file that it has changed, and the place of each new one', () => {
    for (const { file } of followed.changes)
      expect([file, recipe.includes(`\`${file}\``)]).toEqual([file, true]);
    for (const { file, toldAs } of followed.files)
      expect([file, recipe.includes(toldAs)]).toEqual([file, true]);
  });

  test('names no file that is not there', () => {
    const missing = namedIn(recipe).filter(
      (name) => !existsSync(path.join(root, name)) && !RELATIVE.has(name) && !BESIDE_DESTINATIONS(name),
    );
    expect(missing).toEqual([]);
  });
});

/** Runs a program of the project in the copy. Returns what it wrote. */
async function run(...args: string[]): Promise<string> {
  const env = { ...process.env, NODE_OPTIONS: '', TEST_NO_SERVICES: '1' };
  const ran = await execute(process.execPath, args, { cwd: copy, env, maxBuffer: 64 * 1024 * 1024 }).catch(
    (error: { stdout: string; stderr: string }) => error,
  );
  return `${ran.stdout}${ran.stderr}`;
}

test('what they have written has the right types, and is listed where it belongs', async () => {
  expect(await run('node_modules/typescript/bin/tsc', '--singleThreaded')).toBe('');
  const listed = await run(
    '--input-type=module',
    '--eval',
    `const { PRODUCTS } = await import('./products.ts');
     const { ROUTES } = await import('./api/routes.ts');
     const { COMMANDS } = await import('./cli/program.ts');
     const { DESTINATION_TYPES } = await import('./destinations/registry.ts');
     const { MODEL_NAMES } = await import('./models/index.ts');
     const { describeSettings } = await import('./config.ts');
     console.log(JSON.stringify({
       product: PRODUCTS.some((one) => one.name === 'jottings'),
       routes: ROUTES.management.filter((one) => /^(jotting|stamp)Routes$/.test(one.name)).length,
       command: COMMANDS.some((one) => one.names.includes('jotting')),
       destination: DESTINATION_TYPES.includes('PaperTape'),
       model: MODEL_NAMES.includes('tombstones'),
       setting: describeSettings().some((one) => one.name === 'SLUICE_JOTTINGS'),
     }));`,
  );
  expect(JSON.parse(listed.trim().split('\n').at(-1) as string)).toEqual({
    ...{ product: true, routes: 2, command: true, destination: true, model: true, setting: true },
  });
});

test('`npm run docs` documents it, and the tests of the architecture and of the tables pass', async () => {
  expect(await run('scripts/generate-docs.ts')).not.toMatch(/^\w*Error\b/m);
  const read = (file: string) => readFileSync(path.join(copy, file), 'utf8');
  const documented: [file: string, text: string][] = [
    ['docs/architecture.md', '`jottings/rows/`'],
    ['docs/exports-destinations.md', '`PaperTape`'],
    ['docs/exports-models.md', '`tombstones`'],
    ['README.md', '`SLUICE_JOTTINGS`'],
  ];
  for (const [file, text] of documented) expect([file, read(file).includes(text)]).toEqual([file, true]);
  const said = await run(
    ...[
      'node_modules/jest/bin/jest.js',
      '--runInBand',
      'test/architecture',
      'test/destinations/config',
      'test/docs',
    ],
    ...['test/models/tombstones'],
  );
  expect(said).toMatch(/Tests: +\d+ passed, \d+ total/);
  expect(said).not.toContain('✕');
});
