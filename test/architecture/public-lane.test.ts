import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { type Import, importGraph, sourceFiles } from './import-graph.ts';

const root = path.resolve(import.meta.dirname, '../..');
const LANE = 'api/public/';
/** What the lane may import of ours, types included. */
const ALLOWED = [LANE, 'api/copies.ts', 'api/errors.ts', 'api/fields.ts', 'db/', 'telemetry/', 'values/'];
/** The products that use the lane. */
const PRODUCTS = [
  'capture/',
  'api/capture/',
  'api/remote-config.ts',
  'api/browser-scripts.ts',
  'flags/',
  'api/flags/',
  'surveys/',
  'api/surveys/',
];

const startsWithAny = (name: string, starts: string[]) => starts.some((one) => name.startsWith(one));

/** Every file of ours that a folder reaches by imports, types included. */
function reached(graph: Import[], folder: string): Set<string> {
  const targets = Map.groupBy(
    graph.filter((one) => one.own),
    (one) => one.file,
  );
  const found = new Set([...targets.keys()].filter((file) => file.startsWith(folder)));
  for (const file of found) for (const { target } of targets.get(file) ?? []) found.add(target);
  return found;
}

test('the public lane imports no product, directly or through other files', () => {
  const graph = importGraph(root);
  const own = graph.filter((one) => one.own && one.file.startsWith(LANE));
  expect(own.length).toBeGreaterThan(10);
  expect(own.filter(({ target }) => !startsWithAny(target, ALLOWED))).toEqual([]);
  const all = reached(graph, LANE);
  expect(all).toContain('db/projects.ts');
  expect([...all].filter((file) => startsWithAny(file, PRODUCTS))).toEqual([]);
  // The same walk finds products where they are.
  expect([...reached(graph, 'api/capture/')]).toContain('capture/ingest.ts');
});

test('the public lane names no product', () => {
  const naming = sourceFiles(root)
    .filter((file) => file.startsWith(LANE))
    .filter((file) =>
      /capture|remote.?config|\bdecide\b|feature.?flag/i.test(readFileSync(path.join(root, file), 'utf8')),
    );
  expect(naming).toEqual([]);
});
