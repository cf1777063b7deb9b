import { describe, expect, test } from '@jest/globals';
import createHogQLParser from '@posthog/hogql-parser';
import { SourceError } from '../../../hog/errors.ts';
import { withCalls } from '../../../hog/parser/calls.ts';
import { toExpr } from '../../../hog/parser/convert-expression.ts';
import { toSelect } from '../../../hog/parser/convert-select.ts';
import type { Engine } from '../../../hog/parser/engine.ts';
import { answerOf } from '../../../hog/parser/messages.ts';
import { createReader } from '../../../hog/parser/reader.ts';
import { rounds } from '../../support/rounds.ts';
import { Random } from '../support/random.ts';

const reference = await createHogQLParser();
type Kind = 'expression' | 'select';

const read = (kind: Kind, source: string): string =>
  kind === 'select' ? reference.parseSelect(source) : reference.parseExpr(source);

/** What the parser itself was given. */
let given: string[] = [];
const plain: Engine = {
  lanes: 1,
  close: async () => undefined,
  parse: async (kind, sources) => {
    given.push(...sources);
    return sources.map((source) => read(kind as Kind, source));
  },
};
const engine = withCalls(plain);

function outcome(kind: Kind, source: string, json: string): string {
  const reader = createReader(source, 1_000);
  try {
    const raw = answerOf(reader, source, json);
    return JSON.stringify(kind === 'select' ? toSelect(reader, raw) : toExpr(reader, raw));
  } catch (error) {
    if (!(error instanceof SourceError)) throw error;
    return `${error.code} ${error.line}:${error.column} ${error.message}`;
  }
}

/** The tree, with all places in the source, or the error. */
async function cut(kind: Kind, source: string): Promise<string> {
  given = [];
  const [json] = await engine.parse(kind, [source], { limitMs: 1, usedMs: 0 });
  return outcome(kind, source, json as string);
}
const whole = (kind: Kind, source: string) => outcome(kind, source, read(kind, source));
const nested = (depth: number, inside: string) => 'f('.repeat(depth) + inside + ')'.repeat(depth);

describe('deeply nested calls', () => {
  test('reach the parser in pieces, however deep they are', async () => {
    const tree = await cut('select', `select ${nested(60, "'a)', event")} as x from events`);
    expect(tree).toContain('"chain":["event"]');
    expect(given).toHaveLength(30);
    expect(Math.max(...given.map((one) => one.split('(').length - 1))).toBe(2);
  });

  test('cost little to cut, however many there are', async () => {
    const many = Array(15_000).fill('g(h(i(a)))').join();
    const texts: number[] = [];
    const made: Engine = {
      ...{ lanes: 1, close: async () => undefined },
      parse: async (_kind, sources) => {
        texts.push(sources.length);
        return sources.map(() => '{"error":true}');
      },
    };
    // Comparing each with each, or counting from the beginning for each, takes longer than a test may.
    await withCalls(made).parse('expression', [`'😀' = f(f(${many}))`], { limitMs: 1, usedMs: 0 });
    expect(texts).toEqual([15_001, 1, 1]);
  });

  test.each<[Kind, string]>([
    ['expression', nested(4, 'a')],
    ['expression', nested(4, "'😀', a.b, c")],
    ['expression', `'😀' = ${nested(4, 'x, 1.0')} and ${nested(4, "'('")}`],
    ['expression', `f(${nested(3, 'a')}, ${nested(3, 'b')}, x -> ${nested(3, 'x')})`],
    ['expression', `count(distinct ${nested(4, 'a')})`],
    ['expression', `quantile(0.5)(${nested(4, 'a')})`],
    [
      'expression',
      `if(left(${nested(3, 'a')}, 2), right(replace(g(b), 'a', 'b'), 1), trim(substring(h(c), 1)))`,
    ],
    ['expression', `x in (${nested(4, 'a')})`],
    ['expression', `(${nested(4, 'a')}, 1).1`],
    ['expression', `f(g(h(i(a))) as b, g(h(i(a))) + 1, (g(h(i(a)))))`],
    ['expression', `f(-- (\n g(/* ( */ h(i(j(a)))))`],
    ['expression', `f(g(h(i(a)))(1), sum(g(h(i(a)))) over (partition by f(g(h(a)))))`],
    ['expression', `f(f(f(f(_0_____, _1____))))`],
    ['expression', `and(or(and(or(a, b), c), d), e)`],
    ['select', `select ${nested(4, 'a')}, ${nested(4, 'b')}, c from events where ${nested(4, 'x')} = 1`],
    [
      'select',
      `select a from (select ${nested(4, 'a')} as a from events) where a in (select ${nested(4, 'b')} from events)`,
    ],
    [
      'select',
      `with (${nested(4, 'a')}) as x select f(f(f(f((select g(h(i(b)))))))) from numbers(${nested(4, '1')})`,
    ],
    [
      'select',
      `select 1 from events group by a, ${nested(4, 'a')}, b order by a, ${nested(4, 'b')}, c limit 5 by ${nested(4, 'a')}, b`,
    ],
    // Wrong texts have the same error, at the same place.
    ['expression', `f(g(h(i(a b))))`],
    ['expression', `f(g(h(i(a))), )x`],
    ['expression', `f(g(h(i(select))))`],
    ['select', `select ${nested(4, 'a')} frm events x y`],
    ['select', `select f(g(h(i(a)) from events`],
  ])('%s of %s is the same as in one piece', async (kind, source) => {
    expect(await cut(kind, source)).toBe(whole(kind, source));
  });

  test('are the same as in one piece, whatever is around them', async () => {
    const random = new Random(7);
    const term = (depth: number): string => {
      if (depth === 0)
        return random.pick(['a', 'properties.x', "'😀('", '1.5', 'b.c', 'null', '{x}', '`a(b`']);
      const inside = () => term(random.below(depth));
      return random.pick([
        () => `${random.pick(['f', 'lower', 'if', 'left', 'not', 'tuple', 'sum'])}(${term(depth - 1)})`,
        () => `f(${inside()}, ${term(depth - 1)})`,
        () => `g(${term(depth - 1)}, ${inside()},${inside()})`,
        () => `(${term(depth - 1)})`,
        () => `${inside()} ${random.pick(['+', '=', 'and', 'in'])} f(${term(depth - 1)})`,
        () => `[${term(depth - 1)}, ${inside()}]`,
        () => `f(x -> ${term(depth - 1)}, ${inside()})`,
        () => `f(${term(depth - 1)} ${random.pick(['as y', '.1', '[1]', 'b', ''])})`,
        () => `case when ${inside()} then f(${term(depth - 1)}) end`,
      ])();
    };
    const wrong: string[] = [];
    let pieces = 0;
    for (let round = 0; round < rounds(25, 400); round++) {
      const source = `f(g(${term(2)}))`;
      const [kind, text] = random.chance(0.5)
        ? (['expression', source] as const)
        : (['select', `select ${source}, x from t where ${term(1)}`] as const);
      const tree = await cut(kind, text);
      if (given.length > 1) pieces += 1;
      if (tree !== whole(kind, text)) wrong.push(text);
    }
    expect(wrong).toEqual([]);
    expect(pieces).toBeGreaterThan(3);
  });
});
