import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from '@jest/globals';
import { closeExportRoot } from '../../exports/runs/export-root.ts';
import { closeDataDir } from '../../stack/owner-only.ts';

let folder: string;
let outside: string;
beforeEach(() => {
  const base = mkdtempSync(path.join(tmpdir(), 'sluice-modes-'));
  [folder, outside] = [path.join(base, 'data'), path.join(base, 'outside')];
  for (const name of [folder, outside]) {
    mkdirSync(name);
    chmodSync(name, 0o755);
  }
});
afterEach(() => rmSync(path.dirname(folder), { recursive: true }));

function file(name: string, mode = 0o644): void {
  mkdirSync(path.dirname(path.join(folder, name)), { recursive: true });
  writeFileSync(path.join(folder, name), 'x');
  chmodSync(path.join(folder, name), mode);
}
const modeOf = (name: string) => statSync(path.join(folder, name)).mode & 0o777;
const open = (name: string) => chmodSync(path.join(folder, name), 0o755);

test('a data directory that others could read is closed, with what is in it', () => {
  for (const name of ['logs/api.log', 'exports/a.jsonl', 'processes/API.json', 'postgres/x', 'notes'])
    file(name);
  for (const name of ['logs', 'exports', 'processes', 'postgres']) open(name);
  closeDataDir(folder);
  expect(['.', 'logs', 'exports', 'processes', 'notes'].map(modeOf)).toEqual([
    ...[0o700, 0o700, 0o700, 0o700],
    0o600,
  ]);
  // It may belong to another account, and cares for itself.
  expect(modeOf('postgres')).toBe(0o755);
});

test('where Postgres runs as another account, that account can pass but not look', () => {
  closeDataDir(folder, true);
  expect(modeOf('.')).toBe(0o711);
  closeDataDir(folder, false);
  expect(modeOf('.')).toBe(0o700);
});

test('exported files of older versions are closed; links are not followed', async () => {
  for (const name of ['@projects/1/a/one.jsonl', 'old/two.jsonl', 'three.jsonl']) file(name);
  for (const name of ['@projects', '@projects/1', '@projects/1/a', 'old']) open(name);
  symlinkSync(outside, path.join(folder, 'link'));
  expect(await closeExportRoot(folder)).toBe(8);
  expect(['.', '@projects', '@projects/1', '@projects/1/a', 'old'].map(modeOf)).toEqual(Array(5).fill(0o700));
  expect(['@projects/1/a/one.jsonl', 'old/two.jsonl', 'three.jsonl'].map(modeOf)).toEqual(
    Array(3).fill(0o600),
  );
  expect(statSync(outside).mode & 0o777).toBe(0o755);
  expect(await closeExportRoot(folder)).toBe(0);
  expect(await closeExportRoot(path.join(folder, 'missing'))).toBe(0);
});
