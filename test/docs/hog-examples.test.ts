// Programs in requests that the documentation shows: they compile, and everything that they name exists.
import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from '@jest/globals';
import { unknownNames } from '../../functions/code-faults.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { parserForFile } from '../models/support.ts';

const parser = parserForFile();
const PROGRAM = /"hog": ("(?:[^"\\]|\\.)*")/g;
const pages = [
  'README.md',
  ...readdirSync('docs')
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];
const programs = pages.flatMap((page) =>
  [...readFileSync(page, 'utf8').matchAll(PROGRAM)].map(([, text]) => [page, JSON.parse(text as string)]),
) as [page: string, hog: string][];

test('there are some', () => expect(programs.length).toBeGreaterThan(4));

test.each(programs)('%s: %s', async (_page, hog) => {
  const code = compileBytecode(await parser.program(hog), hog);
  expect(unknownNames(code, 'destination')).toEqual([]);
});
