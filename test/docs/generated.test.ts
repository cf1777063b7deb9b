import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { describeSettings, loadConfig } from '../../config.ts';
import type { Pool } from '../../db/pool.ts';
import { checkConfig } from '../../destinations/config.ts';
import { describeKeys, requireDestination } from '../../destinations/registry.ts';
import { createExportMetrics, registerHealthMetrics } from '../../exports/runs/metrics.ts';
import { documents as generated } from '../../scripts/generate-docs.ts';
import { createRegistry } from '../../telemetry/metrics.ts';

const root = path.resolve(import.meta.dirname, '../..');
const documents = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync(path.join(root, 'docs')).map((name) => `docs/${name}`),
].filter((name) => name.endsWith('.md'));

test('the generated parts are up to date (npm run docs)', () => {
  for (const { current, wanted } of generated()) expect(current).toBe(wanted);
});

test('every setting is described, and its default is one that it accepts', () => {
  for (const setting of describeSettings()) {
    expect(setting.description.length).toBeGreaterThan(10);
    if (setting.default !== '') expect(() => loadConfig({ [setting.name]: setting.default })).not.toThrow();
  }
});

test('every key of a destination is described, and the example is taken', () => {
  for (const one of describeKeys()) expect([one.key, one.description.length > 5]).toEqual([one.key, true]);
  const page = readFileSync(path.join(root, 'docs/exports-destinations.md'), 'utf8');
  const examples = [...page.matchAll(/ -d '(\{[^']+\})'/g)].map((match) => JSON.parse(match[1] as string));
  expect(examples.length).toBeGreaterThan(0);
  for (const { destination } of examples) {
    expect(checkConfig(requireDestination(destination.type).fields, destination.config)).toBeTruthy();
  }
});

test.each(documents)('the links of %s lead somewhere', (document) => {
  const text = readFileSync(path.join(root, document), 'utf8');
  const targets = [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)]
    .map((match) => match[1] as string)
    .filter((target) => !/^https?:/.test(target));
  const missing = targets.filter((target) => !existsSync(path.join(root, path.dirname(document), target)));
  expect(missing).toEqual([]);
});

test('the alert rules ask for metrics and labels that there are', () => {
  const registry = createRegistry('test');
  createExportMetrics(registry);
  registerHealthMetrics(registry, {} as Pool);
  const known = new Set(registry.getMetricsAsArray().map(({ name }) => name));
  const page = readFileSync(path.join(root, 'docs/operations.md'), 'utf8');
  const asked = [...page.matchAll(/sluice_export_[a-z_]+/g)].map(([name]) => name);
  expect(new Set(asked).size).toBeGreaterThan(6);
  expect(asked.filter((name) => !known.has(name))).toEqual([]);
});

test('the architecture page names every folder', () => {
  const page = readFileSync(path.join(root, 'docs/architecture.md'), 'utf8');
  const folders = readdirSync(root, { withFileTypes: true })
    .filter(
      (entry) =>
        entry.isDirectory() &&
        !entry.name.startsWith('.') &&
        !['node_modules', 'coverage'].includes(entry.name),
    )
    .map((entry) => entry.name);
  expect(folders.filter((folder) => !page.includes(`\`${folder}/\``))).toEqual([]);
});
