import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { DESTINATION_TYPES } from '../../destinations/registry.ts';
import { firstTypes, folderOfType } from '../destinations/subject.ts';
import { sourceFiles } from './import-graph.ts';

const root = path.resolve(import.meta.dirname, '../..');

/** Texts that are the name of a destination by chance, each with what it means there. */
const OTHER_MEANINGS: Readonly<Record<string, string>> = {
  "cli/commands/doctor.ts 'Postgres'": 'the database of Sluice, a heading of its report',
  "functions/icons.ts 'S3'": 'the letters of an icon',
  "stack/stack.ts 'Postgres'": 'a process of the stack',
};

/** The names of destinations in a text of code: as a string, or as the key of an object. */
function namesIn(text: string): string[] {
  const names = DESTINATION_TYPES.join('|');
  const found = text.matchAll(
    new RegExp(`(?<quote>['"])(?<text>${names})\\k<quote>|^\\s*(?<key>${names}):`, 'gm'),
  );
  return [...found].map(({ groups }) => (groups?.text ?? groups?.key) as string);
}

test('no file outside of its folder knows a destination by its name', () => {
  const sources = sourceFiles(root).filter((file) => !/^(destinations\/[^/]+|test|bench)\//.test(file));
  expect(sources.length).toBeGreaterThan(500);
  const found = sources.flatMap((file) =>
    namesIn(readFileSync(path.join(root, file), 'utf8')).map((name) => `${file} '${name}'`),
  );
  expect([...new Set(found)].sort()).toEqual(Object.keys(OTHER_MEANINGS).sort());
});

test('finds a comparison, a switch and a table', () => {
  expect(
    namesIn('if (type === \'S3\') return 1;\nswitch (x) { case "NoOp": }\nconst all = {\n  HTTP: 2,\n};'),
  ).toEqual(['S3', 'NoOp', 'HTTP']);
  expect(namesIn("const s3 = 's3'; // S3, and HTTP: like this")).toEqual([]);
});

test('a destination is a folder of its name, with a definition and a subject of the conformance suite', () => {
  for (const type of firstTypes()) {
    const folder = folderOfType(type);
    for (const file of [`destinations/${folder}/${folder}.ts`, `test/destinations/${folder}/subject.ts`])
      expect([file, existsSync(path.join(root, file))]).toEqual([file, true]);
  }
});
