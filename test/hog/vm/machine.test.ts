import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { type PausedState, resume, run } from '../../../hog/vm/index.ts';
import { compile, failure, result, runSource } from './support.ts';

describe('results', () => {
  test.each<[string, unknown]>([
    ['return 1 + 2', 3],
    ["return ['1' + 2, 'a' + 'b', 1 / 0]", [3, Number.NaN, Number.POSITIVE_INFINITY]],
    ["return [1 = '1', true = 'true', 1 = true, null = null, null = 0]", [true, true, true, true, false]],
    ["return ['b' < 'a', '10' < 9, [1, 2] < [1, 10]]", [false, false, true]],
    [
      "return ['abc' like 'b', 'abc' like 'a%c', 'abc' ilike 'B_', 'a.c' like 'a_c', 'abc' like 'a.c']",
      [true, true, true, true, false],
    ],
    ["return ['two\\nlines' like 'two%lines', 'x' like '', 'É' ilike 'é']", [false, true, true]],
    ["return ['abc' =~ '^a.c$', 'abc' =~* 'B', null =~ 'a', 'a' =~ '']", [true, true, false, false]],
    ["return ['a' in 'car', 1 in [1, 2], 3 not in (1, 2)]", [true, true, true]],
    ['let a := [1, 2, 3]; return [a[1], a[-1], a[4], a[-4], a.2]', [1, 3, null, null, 2]],
    ["return [null.a, 'text'.a, null?.b, 5?.c]", [null, null, null, null]],
    [
      `return [JSONHas(null, 1), JSONHas('{"a": null}', 'a', 1), JSONHas('[null]', 1), JSONHas([[null]], 1, -1)]`,
      [false, false, true, true],
    ],
    ['return [1 and 2, 1 and 0, 0 or null, not 0]', [true, false, false, true]],
    ["let d := {'a': 1}; d.b := 2; d['c'] := [1]; d.c[1] := 5; return d", { a: 1, b: 2, c: [5] }],
    ['let l := [1]; l[4] := 4; return l', [1, null, null, 4]],
    ['let s := 0; for (let i := 1; i <= 10; i := i + 1) { s := s + i } return s', 55],
    [
      "let s := []; for (let k, v in {'x': 1, 'y': 2}) { s := arrayPushBack(s, [k, v]) } return s",
      [
        ['x', 1],
        ['y', 2],
      ],
    ],
    ['fun f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) } return f(15)', 610],
    [
      'let fs := []; for (let i in [1, 2, 3]) { let j := i; fs := arrayPushBack(fs, () -> j) } return arrayMap(f -> f(), fs)',
      [1, 2, 3],
    ],
    ['let n := 0; let up := () -> { n := n + 1; return n }; up(); up(); return n', 2],
    ['return arrayReduce((a, b) -> a + b, [1, 2, 3], 10)', 16],
    ['let f := length; return [f([1, 2]), typeof(f), typeof(x -> x)]', [2, 'function', 'function']],
    ["return sortableSemver('v1.10.2-beta') > sortableSemver('1.9')", true],
    ['return [5 between 1 and 10, 5 not between 1 and 10, null between 1 and 2]', [true, false, null]],
    [
      "try { throw HogError('Odd', 'm', {'p': 1}) } catch (x: Other) { return 1 } catch (y: Odd) { return [y.type, y.message, y.payload] }",
      ['Odd', 'm', { p: 1 }],
    ],
    ["return f'{1} and {null} and {[1, 'a']}'", "1 and  and [1, 'a']"],
    ["return <Card title='x'/>", { __hx_tag: 'Card', title: 'x' }],
    ["return toString(toDateTime('2024-02-29T12:00:00Z'))", '2024-02-29T12:00:00.000Z'],
    [
      "return [sha256Hex('a'), md5Hex('a'), extractRegex('a1b22', '[a-z]([0-9]{2})')]",
      [
        'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb',
        '0cc175b9c0f1b6a831c399e269772661',
        '22',
      ],
    ],
  ])('%s', async (source, expected) => {
    expect(result(await runSource(source))).toEqual(expected);
  });

  test('globals are read by own properties only', async () => {
    const globals = JSON.parse('{"event":"x","properties":{"__proto__":"data","constructor":1,"list":[7]}}');
    const source =
      'return [event, event.length, properties.__proto__, properties.constructor, properties.toString, properties.list]';
    expect(result(await runSource(source, { globals }))).toEqual(['x', 1, 'data', 1, null, [7]]);
    expect(failure(await runSource('return toFixed.name', { globals }))[1]).toBe(
      'Global variable not found: toFixed.name',
    );
    expect(failure(await runSource('return constructor', { globals }))[1]).toBe(
      'Global variable not found: constructor',
    );
  });

  test('functions of the host get and give plain data', async () => {
    const seen: unknown[] = [];
    const host = (...args: unknown[]) => {
      seen.push(...args);
      return { ok: [true] };
    };
    const functions = { host };
    const source = "return host({'a': (1, 2)}, 'x').ok[1]";
    expect(result(await runSource(source, { functions }))).toBe(true);
    expect(seen).toEqual([{ a: [1, 2] }, 'x']);
  });

  test('print is captured, in the words of the reference', async () => {
    const source =
      "print('a', 1, [1, 'x'], (1, 2), (1,), {'a': null}, toDate('2024-05-01'), Error('m'), x -> x)";
    const outcome = await runSource(source);
    expect(outcome.printed).toEqual([
      "a 1 [1, 'x'] (1, 2) tuple(1) {'a': null} Date(2024, 5, 1) Error('m') fn<lambda(1)>",
    ]);
  });

  test('clock and chance come from outside', async () => {
    const source = 'return [toString(now()), toString(today()), randomFloat(), generateUUIDv4()]';
    const clock = () => 1_700_000_000_000;
    expect(result(await runSource(source, { clock, random: () => 0.5 }))).toEqual([
      '2023-11-14T22:13:20.000Z',
      '2023-11-14',
      0.5,
      '88888888-8888-4888-8888-888888888888',
    ]);
    expect(failure(await runSource('return now()'))).toEqual([
      'runtime',
      'now() is not available here: there is no clock',
    ]);
    expect(failure(await runSource('return randomFloat()'))[0]).toBe('runtime');
  });
});

describe('what the reference gets wrong', () => {
  test('return inside try leaves no handler behind', async () => {
    const source = `
      fun safe(x) { try { return x } catch (e) { return null } }
      safe(1)
      try { safe(2); throw Error('outer') } catch (e) { return e.message }`;
    expect(result(await runSource(source))).toBe('outer');
  });

  test('a typed catch with a variable of its own that does not match passes on', async () => {
    const source = `
      let got := []
      try {
        try { throw Error('x') } catch (err: Foo) { got := [err] } catch (other: Bar) { got := [other] }
      } catch (e) { return [e.message, got] }`;
    expect(result(await runSource(source))).toEqual(['x', []]);
  });

  test('runtime errors reach catch when asked for, limits never', async () => {
    const source = "try { return jsonParse('{bad') } catch (e) { return e.type }";
    expect(failure(await runSource(source))[0]).toBe('runtime');
    expect(result(await runSource(source, { catchRuntimeErrors: true }))).toBe('RuntimeError');
    const endless = 'try { while (true) {} } catch { return 1 }';
    const options = { catchRuntimeErrors: true, limits: { maxSteps: 1_000 } };
    expect(failure(await runSource(endless, options))[0]).toBe('steps');
  });

  test('between works after other values and in declarations', async () => {
    const source = 'let x := 5 between 1 and 9; return [1, x, 2, 7 between 8 and 9, [3, 4 between 4 and 4]]';
    expect(result(await runSource(source))).toEqual([1, true, 2, false, [3, true]]);
  });

  test('lists have no holes', async () => {
    expect(result(await runSource('let a := []; a[3] := 1; return [length(a), values(a)]'))).toEqual([
      3,
      [null, null, 1],
    ]);
  });

  test('the older form of code runs too', () => {
    expect(run(['_h', 32, 'b', 32, 'a', 2, 'concat', 2, 38])).toMatchObject({ result: 'ab' });
    const declared = ['_h', 41, 'f', 1, 6, 33, 1, 36, 0, 6, 38, 33, 4, 2, 'f', 1, 38];
    expect(run(declared)).toMatchObject({ status: 'finished', result: 5 });
  });
});

describe('pauses', () => {
  const source = `
    let shared := [1]
    let data := {'list': shared, 'again': shared, 'tuple': (1, 2), 'error': RetryError('r', {'x': 1}),
                 'when': toDateTime('2024-01-01T00:00:00Z'), 'numbers': [1/0, -1/0, 0/0]}
    data.self := data
    let count := 0
    let up := () -> { count := count + 1; return count }
    fun inner(x) {
      try {
        let answer := fetch(f'https://x.io/{x}', {'method': 'GET'})
        if (answer.status = 500) { throw Error('bad', answer) }
        return answer
      } catch (e) {
        up()
        return [e.message, e.payload.status]
      }
    }
    let first := inner('a')
    up()
    let second := inner('b')
    shared[1] := 9
    try { throw data.error } catch (e: RetryError) {
      return [first, second, count, data.list, data.again, typeof(data.tuple), e.payload, data.self.self.list,
              typeof(data.when), data.numbers[1] > 5]
    }`;
  const expected = [
    { status: 200, body: 'x' },
    ['bad', 500],
    2,
    [9],
    [9],
    'tuple',
    { x: 1 },
    [9],
    'datetime',
    true,
  ];
  const answers = [{ status: 200, body: 'x' }, { status: 500 }];

  test('go through JSON and lose nothing', async () => {
    let outcome = await runSource(source, { asyncFunctions: ['fetch'] });
    const calls: unknown[] = [];
    for (const answer of answers) {
      if (outcome.status !== 'paused') break;
      calls.push(outcome.call);
      outcome = resume(JSON.parse(JSON.stringify(outcome.state)) as PausedState, answer, {
        asyncFunctions: ['fetch'],
      });
    }
    expect(calls).toEqual([
      { name: 'fetch', args: ['https://x.io/a', { method: 'GET' }] },
      { name: 'fetch', args: ['https://x.io/b', { method: 'GET' }] },
    ]);
    expect(result(outcome)).toEqual(expected);
    expect(outcome.usage.asyncSteps).toBe(2);
  });

  test('go on in another process', async () => {
    const outcome = await runSource(source, { asyncFunctions: ['fetch'] });
    if (outcome.status !== 'paused') throw new Error('no pause');
    const module = path.resolve(import.meta.dirname, '../../../hog/vm/index.ts');
    const script = `import { resume } from ${JSON.stringify(module)};
      let text = ''; for await (const chunk of process.stdin) text += chunk;
      const options = { asyncFunctions: ['fetch'] };
      const [state, first, second] = JSON.parse(text);
      const next = resume(state, first, options);
      process.stdout.write(JSON.stringify(resume(JSON.parse(JSON.stringify(next.state)), second, options).result));`;
    const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], {
      input: JSON.stringify([outcome.state, ...answers]),
      encoding: 'utf8',
    });
    expect(JSON.parse(output)).toEqual(expected);
  });

  test('count: steps, time and waits go on over them', async () => {
    const limits = { maxAsyncSteps: 2 };
    const options = { asyncFunctions: ['wait'], limits };
    let outcome = await runSource('while (true) { wait(1) }', options);
    for (let i = 0; i < 2 && outcome.status === 'paused'; i++) outcome = resume(outcome.state, null, options);
    expect(failure(outcome)).toEqual(['async', 'Exceeded maximum number of async steps: 2']);
    let now = 0;
    const clock = () => (now += 40);
    const timed = { asyncFunctions: ['wait'], clock, limits: { maxMilliseconds: 500 } };
    outcome = await runSource('while (true) { for (let i := 0; i < 300; i := i + 1) {} wait(1) }', timed);
    let pauses = 0;
    while (outcome.status === 'paused' && pauses++ < 100) outcome = resume(outcome.state, null, timed);
    expect(failure(outcome)[0]).toBe('time');
    expect(pauses).toBeGreaterThan(0);
  });

  test('a damaged state is refused', async () => {
    const outcome = run(await compile('return fetch(1)'), { asyncFunctions: ['fetch'] });
    if (outcome.status !== 'paused') throw new Error('no pause');
    const good = outcome.state;
    for (const bad of [
      {},
      null,
      { ...good, version: 2 },
      { ...good, frames: [] },
      { ...good, nodes: [] },
      { ...good, bytecode: ['_H', 1, 999] },
      { ...good, frames: [{ ...good.frames[0], chunk: 'other' }] },
      { ...good, values: [[1]] },
    ]) {
      expect(failure(resume(bad as PausedState, 1, { asyncFunctions: ['fetch'] }))[0]).toMatch(
        /bytecode|runtime/,
      );
    }
  });
});
