// Filter documents with something broken in them: each is read, or refused with a FilterError that names a place of
// the document; nothing else is thrown, by reading, the tree, the matcher, or a back end.
import { expect, test } from '@jest/globals';
import { build } from '../../hog/ast/index.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { SourceError } from '../../hog/errors.ts';
import { compileJavaScript } from '../../hog/javascript/index.ts';
import { createSchema, printStatement, selection } from '../../hog/sql/index.ts';
import {
  FilterError,
  functionFilterExpression,
  functionHogqlSources,
  prepareMatcher,
  readFunctionFilters,
} from '../../properties/index.ts';
import { Random } from '../hog/support/random.ts';
import { rounds } from '../support/rounds.ts';
import { MOMENT } from './cases.ts';
import { document } from './generate-filter.ts';

const JUNK: unknown[] = [
  null,
  true,
  0,
  -1,
  1.5,
  '',
  'x',
  '(',
  '\0',
  '\ud800',
  [],
  {},
  [null],
  [[]],
  [{}],
  { a: { b: 1 } },
  ['x', { y: 1 }],
  Number.POSITIVE_INFINITY,
  '1e999',
  '__proto__',
  'AND',
  'OR',
  'cohort',
  'group',
  'element',
  'regex',
  'semver_tilde',
  'in',
  'between',
  '-9999y',
  [5, 1],
  ['a', 'b'],
];
const NAMES = [
  'key',
  'type',
  'operator',
  'value',
  'values',
  'negation',
  'group_type_index',
  'id',
  'name',
  '__proto__',
  'k__regex',
];

/** Replaces, adds, or removes something, anywhere in it. */
function broken(random: Random, node: unknown): unknown {
  if (random.chance(0.15)) return random.pick(JUNK);
  if (Array.isArray(node)) {
    const copy = [...node];
    if (copy.length === 0 || random.chance(0.15)) copy.push(random.pick(JUNK));
    else {
      const at = random.below(copy.length);
      copy[at] = broken(random, copy[at]);
    }
    return copy;
  }
  if (typeof node !== 'object' || node === null) return random.pick(JUNK);
  const entries = Object.entries(node);
  if (entries.length === 0 || random.chance(0.15)) entries.push([random.pick(NAMES), random.pick(JUNK)]);
  else if (random.chance(0.1)) entries.splice(random.below(entries.length), 1);
  else {
    const entry = random.pick(entries);
    entry[1] = broken(random, entry[1]);
  }
  return Object.fromEntries(entries);
}

/** Whether a path leads to something in the document, or to something that is missing where it should be. */
function leads(path: string, source: unknown): boolean {
  if (path === '') return typeof source !== 'object' || Array.isArray(source);
  let node = source;
  const parts = path.split('.');
  return parts.every((part, index) => {
    if (typeof node !== 'object' || node === null) return false;
    if (!Object.hasOwn(node, part)) return index === parts.length - 1;
    node = (node as Record<string, unknown>)[part];
    return true;
  });
}

const SQL = { schema: createSchema('on event'), projectId: 1, timezone: 'UTC' };

/** The error that refuses the document, if one does; what is no typed error is thrown. */
function refusalOf(source: unknown): FilterError | SourceError | null {
  try {
    const read = readFunctionFilters(source);
    const hogql = new Map(functionHogqlSources(read).map((text) => [text, build.constant(true)]));
    const tree = functionFilterExpression(read, { moment: MOMENT, scope: 'realtime', hogql });
    JSON.stringify(compileBytecode(tree));
    compileJavaScript(tree);
    const where = functionFilterExpression(read, { moment: MOMENT, scope: 'events', hogql });
    printStatement(selection({ table: 'events', select: [build.field('uuid')], where }), SQL);
    const groups = [read.properties, ...read.entries.map((entry) => entry.properties)];
    for (const group of groups) prepareMatcher(group, 'flag');
    // The matcher does not decide about HogQL.
    if (hogql.size === 0) for (const group of groups) prepareMatcher(group, 'filter');
  } catch (error) {
    if (error instanceof FilterError || error instanceof SourceError) return error;
    throw new Error(`${JSON.stringify(source)}: ${String(error)}`, { cause: error });
  }
  return null;
}

const DOCUMENTS = rounds(6_000, 200_000);

test('broken documents', () => {
  const random = new Random(20_260_315);
  const count = { accepted: 0, refused: 0 };
  const lost: string[] = [];
  for (let i = 0; i < DOCUMENTS; i++) {
    let source: unknown = document(random);
    for (let blows = 1 + random.below(2); blows > 0; blows--) source = broken(random, source);
    const refusal = refusalOf(source);
    if (refusal === null) count.accepted++;
    else {
      count.refused++;
      // A column that does not exist is found by the printer of SQL, which names the column.
      if (refusal instanceof SourceError) continue;
      if (!leads(refusal.path, source))
        lost.push(`${JSON.stringify(source)}: ${refusal.path}: ${refusal.message}`);
    }
  }
  expect(lost.slice(0, 5)).toEqual([]);
  expect(count.accepted).toBeGreaterThan(DOCUMENTS * 0.15);
  expect(count.refused).toBeGreaterThan(DOCUMENTS * 0.15);
}, 1_800_000);
