import { readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { build } from '../../hog/ast/index.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { compileJavaScript } from '../../hog/javascript/index.ts';
import { createSchema, printStatement, selection } from '../../hog/sql/index.ts';
import {
  filterExpression,
  OPERATORS,
  type PropertyFilter,
  prepareMatcher,
  readFilters,
} from '../../properties/index.ts';
import { eventsDatabase } from '../hog/sql/database.ts';
import { PROJECT } from '../hog/sql/tables.ts';
import { evaluate } from '../hog/support/evaluate.ts';
import { type Case, documentOf, FILES, hasProperty, isForFlags, MOMENT } from './cases.ts';
import { DIFFERENCES, isKnownDifference } from './differences.ts';

const globalsOf = (one: Case) => ({
  event: 'e',
  properties: hasProperty(one) ? { k: one.property } : {},
});

/** The cases in which an engine says something else than the file. */
function disagreements(
  cases: Case[],
  says: (one: Case) => unknown,
  expected: (one: Case) => boolean,
): string[] {
  return cases.flatMap((one) => {
    const answer = says(one);
    return answer === expected(one) ? [] : [`${JSON.stringify(one)}: ${String(answer)}`];
  });
}

const expressionOf = (one: Case, scope: 'realtime' | 'events') =>
  filterExpression(readFilters(documentOf(one)), { moment: MOMENT, scope });

describe.each(FILES)('$name', ({ cases }) => {
  test('the matcher, as filters do', () => {
    const says = (one: Case) =>
      prepareMatcher(readFilters(documentOf(one)), 'filter')(() => one.property, MOMENT);
    expect(disagreements(cases, says, (one) => one.matches)).toEqual([]);
  });

  test('the matcher, as flags do', () => {
    const says = (one: Case) =>
      prepareMatcher(readFilters(documentOf(one)), 'flag')(() => one.property, MOMENT);
    expect(disagreements(cases.filter(isForFlags), says, (one) => one.flag ?? one.matches)).toEqual([]);
  });

  test('bytecode', () => {
    const says = (one: Case) =>
      evaluate(compileBytecode(expressionOf(one, 'realtime')), { globals: globalsOf(one) });
    expect(disagreements(cases, says, (one) => one.matches)).toEqual([]);
  });

  test('JavaScript', () => {
    const says = (one: Case) => {
      const outcome = compileJavaScript(expressionOf(one, 'realtime')).run(globalsOf(one));
      return outcome.status === 'finished' ? outcome.result : outcome.error;
    };
    expect(disagreements(cases, says, (one) => one.matches)).toEqual([]);
  });
});

describe('SQL', () => {
  const database = eventsDatabase();

  test.each(FILES)('$name', async ({ cases }) => {
    await database.replaceEvents(
      cases.map((one, index) => ({
        event: String(index),
        properties: hasProperty(one) ? { k: one.property } : {},
      })),
    );
    const wrong: string[] = [];
    for (const [index, one] of cases.entries()) {
      const isRow = build.compare('==', build.field('event'), build.constant(String(index)));
      const statement = printStatement(
        selection({
          table: 'events',
          select: [build.field('event')],
          where: build.and([isRow, expressionOf(one, 'events')]),
        }),
        { schema: createSchema('on event'), projectId: PROJECT, timezone: 'UTC' },
      );
      const found = (await database.query(statement)).length === 1;
      if (found !== (one.sql ?? one.matches)) wrong.push(`${JSON.stringify(one)}: ${found}`);
    }
    expect(wrong).toEqual([]);
  });
});

test('there are enough cases, and every operator has some', () => {
  const cases = FILES.flatMap((file) => file.cases);
  expect(cases.length).toBeGreaterThanOrEqual(400);
  const untested = OPERATORS.filter((operator) => !cases.some((one) => one.operator === operator));
  // These have tests of their own: flags only, other flags, and a project's rules.
  expect(untested).toEqual([
    'starts_with',
    'not_starts_with',
    'ends_with',
    'not_ends_with',
    'is_cleaned_path_exact',
    'flag_evaluates_to',
  ]);
});

describe('differences between engines', () => {
  const differing = FILES.flatMap((file) => file.cases).filter((one) => one.sql !== undefined);
  const documentation = readFileSync(path.join(import.meta.dirname, '../../docs/properties.md'), 'utf8');
  const filterOf = (one: Case) => readFilters(documentOf(one)).values[0] as PropertyFilter;

  test('each is one that is known', () => {
    const isUnknown = (one: Case) => {
      const { operator, value } = filterOf(one);
      return !isKnownDifference(operator, value, one.property);
    };
    expect(differing.filter(isUnknown)).toEqual([]);
  });

  test.each(DIFFERENCES)('$row: is in the documentation, and real', ({ row, applies }) => {
    expect(documentation).toContain(`\n| ${row}`);
    const shows = (one: Case) => {
      const { operator, value } = filterOf(one);
      return [value].flat().some((single) => applies(operator, single, one.property));
    };
    expect(differing.some(shows)).toBe(true);
  });

  test('the documentation has no other', () => {
    const [, table = ''] = documentation.split(
      '| Property | Test | Filters | SQL | Why |\n|---|---|---|---|---|\n',
    );
    const rows = (table.split('\n\n', 1)[0] as string).split('\n');
    expect(rows).toHaveLength(DIFFERENCES.length);
    expect(rows.filter((line) => !DIFFERENCES.some(({ row }) => line.startsWith(`| ${row}`)))).toEqual([]);
  });
});
