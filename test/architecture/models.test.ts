import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { MODEL_NAMES } from '../../models/index.ts';
import { importsOf, sourceFiles } from './import-graph.ts';

const root = path.resolve(import.meta.dirname, '../..');
const NAMES = MODEL_NAMES.join('|');
/** The products and leaves that work with models. */
const ABOUT_MODELS = /^(exports|models|destinations)\//;

/** Texts that are the name of a model by chance, each with what it means there. */
const OTHER_MEANINGS: Readonly<Record<string, string>> = {
  "api/events/trace.ts 'events'": 'a tag of the OpenAPI document',
  "destinations/postgres/config.ts 'events'": 'the default name of a table in the Postgres of a user',
  "models/filters.ts 'events'": 'what conditions on properties look at',
};

const read = (file: string) => readFileSync(path.join(root, file), 'utf8');

/** The names of models in a text of code: as a string, or as the key of an object. */
function namesIn(text: string): string[] {
  const found = text.matchAll(
    new RegExp(`(?<quote>['"])(?<text>${NAMES})\\k<quote>|^\\s*(?<key>${NAMES}):`, 'gm'),
  );
  return [...found].map(({ groups }) => (groups?.text ?? groups?.key) as string);
}

/** The places in a text of code or SQL where something that is called a model is compared with a name of one. */
function comparisonsIn(text: string): string[] {
  const found = text.matchAll(
    new RegExp(
      `\\bmodel\\w*\\W{1,10}(?:in|any|array|case)?\\W{0,10}(?:array|case)?\\W{0,10}['"](?:${NAMES})['"]`,
      'gi',
    ),
  );
  return [...found].map(([place]) => place);
}

const sources = sourceFiles(root).filter((file) => !/^(models\/[^/]+\/|test\/|bench\/)/.test(file));

test('no file that works with models knows one by its name', () => {
  const about = sources.filter(
    (file) =>
      ABOUT_MODELS.test(file) || importsOf(root, file).some(({ target }) => ABOUT_MODELS.test(target)),
  );
  expect(about.length).toBeGreaterThan(150);
  const found = about.flatMap((file) => namesIn(read(file)).map((name) => `${file} '${name}'`));
  expect([...new Set(found)].sort()).toEqual(Object.keys(OTHER_MEANINGS).sort());
});

test('no file compares a model with a name', () => {
  const found = sources.flatMap((file) => comparisonsIn(read(file)).map((place) => `${file}: ${place}`));
  expect(found).toEqual([]);
});

test('finds a comparison, a switch, a table and SQL', () => {
  expect(
    namesIn(
      'if (model === \'events\') return 1;\nswitch (x) { case "persons": }\nconst all = {\n  sessions: 2,\n};',
    ),
  ).toEqual(['events', 'persons', 'sessions']);
  expect(namesIn("const all = 'all events'; // events, and persons: like this")).toEqual([]);
  for (const text of [
    "row.model !== 'events' ? 1 : 2",
    "e.model = 'events' and e.deleted_at is null",
    "model text not null check (model in ('events', 'persons'))",
    "b.model <> 'sessions'",
    "e.model = any(array['persons'])",
    "switch (model) { case 'persons':",
  ])
    expect([text, comparisonsIn(text).length]).toEqual([text, 1]);
  expect(comparisonsIn("const models = ['of events']; model.name")).toEqual([]);
});

test('a model is a folder of its name, with a definition', () => {
  const folders = readdirSync(path.join(root, 'models'), { withFileTypes: true })
    .filter((one) => one.isDirectory())
    .map(({ name }) => name);
  expect(folders.sort()).toEqual([...MODEL_NAMES].sort());
  for (const name of MODEL_NAMES)
    expect([name, existsSync(path.join(root, `models/${name}/${name}.ts`))]).toEqual([name, true]);
});
