// What docs/hogql.md says is refused is refused, with a place.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from '@jest/globals';
import type { SelectNode } from '../../../hog/ast/index.ts';
import { SourceError } from '../../../hog/errors.ts';
import { createSchema, printStatement } from '../../../hog/sql/index.ts';
import { testParser } from '../parser/support.ts';

const parser = testParser();
const document = readFileSync(path.resolve(import.meta.dirname, '../../../docs/hogql.md'), 'utf8');
const table = document.split('## What is refused')[1]?.split('\n## ')[0] as string;
const examples = table
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .flatMap((line) =>
    [...(line.split(' | ')[1] as string).matchAll(/`([^`]+)`/g)].map((match) => match[1] as string),
  );

test('the examples are found', () => {
  expect(examples.length).toBeGreaterThan(50);
});

test.each(examples)('%s', async (source) => {
  const options = { schema: createSchema('current'), projectId: 1, timezone: 'UTC', source };
  const refusal = await Promise.resolve()
    .then(async () => printStatement((await parser.select(source)) as SelectNode, options).text)
    .catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(SourceError);
  expect((refusal as SourceError).line).toBe(1);
});
