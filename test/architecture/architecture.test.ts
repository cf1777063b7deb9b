import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { importGraph, sourceFiles } from './import-graph.ts';
import { ENVIRONMENT_READERS, violations } from './rules.ts';

const root = path.resolve(import.meta.dirname, '../..');

describe('the import table', () => {
  test('no file imports what its folder may not', () => {
    expect(violations(importGraph(root))).toEqual([]);
  });

  test('finds every kind of violation in a tree that has them', () => {
    const bad = importGraph(path.join(root, 'test/fixtures/bad-tree'));
    expect(violations(bad).sort()).toEqual([
      'api/uses-client.ts imports @temporalio/client: api must not',
      'api/uses-client.ts imports @temporalio/client: schedules is the only Temporal client',
      'api/uses-client.ts imports activities/index.ts: api must not import activities',
      'db/reaches-up.ts imports api/errors.ts: db must not import api',
      'flags/reads-database.ts imports db/pool.ts: flags must not import db',
      'flags/reads-database.ts imports pg: flags must not',
      'unknown/file.ts: the folder unknown has no rule in test/architecture/rules.ts',
      'workflows/does-io.ts imports activities/index.ts: workflows must not import activities',
      'workflows/does-io.ts imports node:fs: workflows may import @temporalio/workflow, @temporalio/common only',
    ]);
  });
});

describe('batch exports', () => {
  test('name neither HTTP nor Temporal, and no edge that uses them, not even for a type', () => {
    const foreign = /^(fastify|@fastify\/|@temporalio\/|(api|cli|worker|activities|workflows|schedules)\/)/;
    const named = importGraph(root).filter(
      ({ file, target }) => file.startsWith('exports/') && foreign.test(target),
    );
    expect(named).toEqual([]);
  });

  test('end runs and backfills in one place', () => {
    const named = sourceFiles(root).filter(
      (file) =>
        !file.startsWith('test/') &&
        !file.startsWith('exports/rows/') &&
        // These move to exports/runs, which ends them there too.
        /\bmark(Run|Backfill)Ended\b/.test(readFileSync(path.join(root, file), 'utf8')),
    );
    expect(named).toEqual(['exports/ending.ts']);
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
