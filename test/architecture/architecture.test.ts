import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { circles, fileCircles, placeCircles } from './circles.ts';
import { importGraph, sourceFiles } from './import-graph.ts';
import { ENVIRONMENT_READERS, placeOf, violations } from './rules.ts';

const root = path.resolve(import.meta.dirname, '../..');
const graph = importGraph(root);
const ours = graph.filter(({ file }) => placeOf(file) !== 'scripts');

describe('who may import whom', () => {
  test('no file imports what its place may not', () => {
    expect(violations(graph)).toEqual([]);
  });

  test('no places import each other in a circle, types included', () => {
    expect(placeCircles(ours, placeOf)).toEqual([]);
  });

  // A language is recursive: an expression holds a statement that holds an expression.
  test('no files import each other in a circle, types included, but those of the Hog language', () => {
    expect(fileCircles(ours).filter((files) => !files.every((file) => file.startsWith('hog/')))).toEqual([]);
  });

  test('finds every kind of violation in a tree that has them', () => {
    const bad = importGraph(path.join(root, 'test/fixtures/bad-tree'));
    expect(violations(bad).sort()).toEqual([
      'api/uses-client.ts imports @temporalio/client: api must not',
      'api/uses-client.ts imports activities/index.ts: api must not import activities',
      'db/reaches-up.ts imports api/errors.ts: db must not import api',
      'exports/commands/knows-http.ts imports api/errors.ts: a product must not know an edge',
      'exports/commands/knows-http.ts imports fastify: exports/commands must not',
      'exports/rules/reads-database.ts imports db/pool.ts: exports/rules must not import db',
      'intervals/reads-file.ts imports node:fs: intervals must not',
      'unknown/file.ts: no place has it; add one in test/architecture/rules.ts',
      'workflows/does-io.ts imports activities/index.ts: workflows must not import activities',
      'workflows/does-io.ts imports node:fs: workflows may import @temporalio/workflow, @temporalio/common only',
    ]);
    expect(placeCircles(bad, placeOf)).toEqual([['api', 'db']]);
    expect(fileCircles(bad)).toEqual([['api/errors.ts', 'db/reaches-up.ts']]);
  });

  test('finds circles of any length, and none where there is none', () => {
    const [a, b, c, d] = ['a', 'b', 'c', 'd'] as const;
    expect(
      circles([
        [a, b],
        [b, c],
        [c, a],
        [c, d],
      ]),
    ).toEqual([[a, b, c]]);
    expect(
      circles([
        [a, b],
        [b, a],
        [c, d],
        [d, c],
        [b, c],
      ]),
    ).toEqual([
      [a, b],
      [c, d],
    ]);
    expect(
      circles([
        [a, b],
        [a, c],
        [b, d],
        [c, d],
      ]),
    ).toEqual([]);
  });
});

test('only config.ts and the programs that start processes read the environment', () => {
  const readers = sourceFiles(root).filter(
    (file) =>
      !ENVIRONMENT_READERS.has(file.split('/')[0] as string) &&
      /\bprocess\.env\b/.test(readFileSync(path.join(root, file), 'utf8')),
  );
  expect(readers).toEqual([]);
});

/** Functions that only one file may call, because what they do must happen in one way. */
const ONE_CALLER = {
  markRunEnded: 'exports/ending.ts',
  markBackfillEnded: 'exports/ending.ts',
} as const;

test('runs and backfills end in one place', () => {
  const sources = sourceFiles(root).filter((file) => !/^(test|exports\/rows)\//.test(file));
  const callers = sources.flatMap((file) => {
    const text = readFileSync(path.join(root, file), 'utf8');
    return Object.entries(ONE_CALLER)
      .filter(([name, only]) => file !== only && new RegExp(`\\b${name}\\b`).test(text))
      .map(([name]) => `${file} names ${name}`);
  });
  expect(callers).toEqual([]);
});

// Clients make the ids of events as they like, and an answer that refuses one of them is an error 500.
test('ids of any version are ids: z.guid(), never z.uuid()', () => {
  const strict = sourceFiles(root).filter(
    (file) =>
      !file.startsWith('test/') && /\bz\s*\.uuid(v\d)?\(/.test(readFileSync(path.join(root, file), 'utf8')),
  );
  expect(strict).toEqual([]);
});
