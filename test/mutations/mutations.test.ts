import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import { MUTATIONS } from './mutations.ts';

const root = path.resolve(import.meta.dirname, '../..');

test('every fault can be made: its text is in its file exactly once, and its test exists', () => {
  const count = ({ file, from }: { file: string; from: string }) =>
    readFileSync(path.join(root, file), 'utf8').split(from).length - 1;
  expect(MUTATIONS.filter((one) => count(one) !== 1).map((one) => one.name)).toEqual([]);
  expect(MUTATIONS.filter((one) => !existsSync(path.join(root, one.test))).map((one) => one.name)).toEqual(
    [],
  );
  const names = MUTATIONS.map((one) => one.name);
  expect(new Set(names).size).toBe(names.length);
});
