import { describe, expect, test } from '@jest/globals';
import createHogQLParser from '@posthog/hogql-parser';
import { SourceError } from '../../../hog/errors.ts';
import { toExpr } from '../../../hog/parser/convert-expression.ts';
import { toSelect } from '../../../hog/parser/convert-select.ts';
import type { Engine } from '../../../hog/parser/engine.ts';
import { answerOf } from '../../../hog/parser/messages.ts';
import { createReader } from '../../../hog/parser/reader.ts';
import { withShapes } from '../../../hog/parser/shapes.ts';
import { rounds } from '../../support/rounds.ts';
import { STRINGS } from '../support/generate-expression.ts';
import { Random } from '../support/random.ts';

const reference = await createHogQLParser();
type Kind = 'expression' | 'select';

const read = (kind: Kind, source: string): string =>
  kind === 'select' ? reference.parseSelect(source) : reference.parseExpr(source);

/** What the parser itself was given. */
let given: string[] = [];
const engineOf = () =>
  withShapes({
    lanes: 1,
    close: async () => undefined,
    parse: async (kind, sources) => {
      given.push(...sources);
      return sources.map((source) => read(kind as Kind, source));
    },
  });

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

const whole = (kind: Kind, source: string) => outcome(kind, source, read(kind, source));

/** Reads texts one after another. Returns their trees, with all places in the source, or their errors. */
async function inTurn(
  kind: Kind,
  sources: readonly string[],
  engine: Engine = engineOf(),
): Promise<string[]> {
  given = [];
  const trees: string[] = [];
  for (const source of sources) {
    const [json] = await engine.parse(kind, [source], { limitMs: 1, usedMs: 0 });
    trees.push(outcome(kind, source, json as string));
  }
  return trees;
}

const day = (date: string, name: string) =>
  `select uuid, properties.'$browser' from events\nwhere timestamp > '${date}' and event in ('${name}', 'b') -- it's\n  and x = 1.50 limit 1`;

describe('queries that differ in their texts in quotes', () => {
  test('are parsed once', async () => {
    const sources = ['2026-01-01', '2026-01-02 10:00:00', '😀', ''].map(
      (date) => `select event from events where timestamp > '${date}' and name = '${date}x' limit 1.0`,
    );
    expect(await inTurn('select', sources)).toEqual(sources.map((source) => whole('select', source)));
    expect(given).toHaveLength(1);
  });

  test('are parsed once when they come together', async () => {
    const engine = engineOf();
    given = [];
    const sources = ["a = '1'", 'b', "a = '22'", "c = '?'", "a = '?'", "c as 'x'", 'b b'];
    const answers = await engine.parse('expression', sources, { limitMs: 1, usedMs: 0 });
    expect(answers.map((json, index) => outcome('expression', sources[index] as string, json))).toEqual(
      sources.map((source) => whole('expression', source)),
    );
    expect(given).toHaveLength(5);
  });

  test('are parsed whole where a text is no value, and the shape is tried once', async () => {
    const sources = ["columns('a.*')", "columns('b.*')", "columns('c.*')"];
    expect(await inTurn('expression', sources)).toEqual(sources.map((one) => whole('expression', one)));
    expect(given).toEqual(["columns('?')", ...sources]);
  });

  test.each<[Kind, string[]]>([
    ['select', [day('2026-01-01', 'a'), day('2026-01-01 00:00:01', 'ab'), day('', '😀😀')]],
    ['expression', ["'a' = x", "'ab' = x", "'' = x", "'\n' = x"]],
    ['expression', ["'?' = x", "'a' = x", "'?' = x"]],
    ['expression', ["f('a', '?', f'?')", "f('?', 'b', f'?')", "f('?', 'b', f'a{'x'}')"]],
    ['expression', ["'😀' = 1.0 and f(1, '😀', 1.0)", "'a' = 1.0 and f(1, '', 1.0)"]],
    ['expression', ["case x when 'a' then 'b' else 'c' end", "case x when 'aa' then 'a' else '' end"]],
    ['expression', ["case when x then 'b' end", "case when x then 'bb' end"]],
    ['expression', ["x between 'a' and 'b'", "x between 'aa' and 'bbb'", "x not between '' and ''"]],
    ['expression', ["x > now() - interval '1 day'", "x > now() - interval '2 days' or y = 'a'"]],
    ['expression', ["toDate('a') + interval '1 day'", "toDate('aa') + interval '3 month'"]],
    ['expression', ["date 'a'", "date '2026-01-01'", "timestamp '2026-01-01'"]],
    ['expression', ["{'a': 'b', 'c': ['d']}", "{'aa': '', 'cc': ['dd']}"]],
    ['expression', ["a['b'].c", "a['bb'].c", "a?.['bb']", "a['b']['c'] ? 'd' : 'e'"]],
    [
      'expression',
      ["x::'a'", "cast(x as 'a')", "cast('a' as DateTime('UTC'))", "cast('' as DateTime('CET'))"],
    ],
    ['expression', ["'a' 'b'", "'a' 'bb'", "f('a' b)", "f('aaa' b)"]],
    ['expression', ["'it''s' = 'a'", "'it''s' = 'aa'", String.raw`'a\'' = 'a'`, String.raw`'a\'' = 'aa'`]],
    ['expression', ["'a", "f('a', ')", "a = 'b' 'c", '']],
    ['expression', ["x like 'a%' or x in ('b') and {p} = 'c'", "x like 'aa%' or x in ('bb') and {p} = ''"]],
    ['expression', ["f(x -> x = 'a', 'b')", "f(x -> x = 'aa', 'bb')", "f(x -> {'a'})", "f(x -> {'aa'})"]],
    ['expression', ["<a b='c' />", "<a b='cc' />", "<a>{'c'}</a>", "x <b and y> 'c'"]],
    [
      'select',
      ["select 1 as 'a', 'b' from t", "select 1 as 'a', 'bb' from t", "select 1 as 'aa', 'b' from t"],
    ],
    [
      'select',
      ["select '1' from t limit 'a'", "select '1' frm t x y", "select '11' frm t x y", "select 'a' from"],
    ],
    [
      'select',
      [
        "select sum(x) filter (where y = 'a') over (partition by 'b') from t",
        "select sum(x) filter (where y = 'aa') over (partition by 'bb') from t",
      ],
    ],
    [
      'select',
      [
        "with 'a' as b select b from t union all select 'c'",
        "with 'aa' as b select b from t union all select 'cc'",
      ],
    ],
  ])('%s of %s are the same as in one piece', async (kind, sources) => {
    // Each of them is the first once, and known twice.
    for (const first of sources.keys()) {
      const order = [...sources.slice(first), ...sources.slice(0, first)];
      const twice = [...order, ...order];
      expect(await inTurn(kind, twice)).toEqual(twice.map((source) => whole(kind, source)));
    }
  });

  test('are the same as in one piece, whatever is around them', async () => {
    const random = new Random(11);
    const quoted = () => `'${random.pick(STRINGS).replaceAll("'", random.pick(["''", String.raw`\'`]))}'`;
    const term = (depth: number): string => {
      if (depth === 0)
        return random.pick([quoted, quoted, () => random.pick(['a', 'x.y', '1.50', '{p}', 'null'])])();
      const inside = () => term(random.below(depth));
      return random.pick([
        () => `f(${inside()}, ${term(depth - 1)})`,
        () => `(${term(depth - 1)})`,
        () =>
          `${inside()} ${random.pick(['+', '=', 'and', 'in', 'like', 'between 1 and', '??'])} ${term(depth - 1)}`,
        () => `[${term(depth - 1)}, ${inside()}]`,
        () => `a[${inside()}]`,
        () => `f(x -> ${term(depth - 1)}, ${inside()})`,
        () => `case ${random.pick(['', inside()])} when ${inside()} then ${term(depth - 1)} end`,
        () => `f(${term(depth - 1)} ${random.pick([`as ${quoted()}`, '.1', 'b', ''])})`,
        () => `{${quoted()}: ${term(depth - 1)}}`,
        () => `f'${random.pick(['?', 'a'])}{${inside()}}' /* ' */`,
        () => `${random.pick(['interval', 'date', 'columns', 'not', '-'])} ${quoted()}`,
      ])();
    };
    const engine = engineOf();
    const wrong: string[] = [];
    let texts = 0;
    let parsed = 0;
    for (let round = 0; round < rounds(60, 1_500); round++) {
      const source = term(random.below(4));
      const [kind, text] = random.chance(0.5)
        ? (['expression', source] as const)
        : (['select', `select ${source}, x from t where ${term(1)}`] as const);
      // The same text with other values, some of which are longer.
      const others = [text, text, text].map((one) => one.replace(/'(?:a|abc|true|0|1\.0)'/g, quoted));
      for (const one of [text, ...others]) {
        const [tree] = await inTurn(kind, [one], engine);
        texts += 1;
        parsed += given.length;
        if (tree !== whole(kind, one)) wrong.push(one);
      }
    }
    expect(wrong).toEqual([]);
    expect(parsed).toBeLessThan(texts);
  });
});
