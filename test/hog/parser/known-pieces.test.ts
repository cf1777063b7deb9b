import { afterAll, describe, expect, test } from '@jest/globals';
import { functionText } from '../../../bench/hog/function-text.ts';
import { type Engine, WasmEngine } from '../../../hog/parser/engine.ts';
import { PARSER_DEFAULTS, parserOf } from '../../../hog/parser/index.ts';
import { ownEngine } from '../../../hog/parser/pool.ts';
import { testParser } from './support.ts';

const texts: string[] = [];
const engine = ownEngine(await WasmEngine.load());
const counting: Engine = {
  ...engine,
  parse: (kind, sources, budget) => {
    texts.push(...sources);
    return engine.parse(kind, sources, budget);
  },
};
const parser = parserOf(counting, PARSER_DEFAULTS);
afterAll(() => parser.close());
const fresh = testParser();

describe('after a change in a program', () => {
  test('only the statement with the change is parsed again', async () => {
    await parser.program(functionText());
    expect(texts.length).toBeGreaterThan(40);
    texts.length = 0;
    const changed = functionText(1);
    const tree = await parser.program(changed);
    expect(texts).toHaveLength(1);
    expect(texts[0]).toContain('attempt < 4');
    expect(JSON.stringify(tree)).toBe(JSON.stringify(await fresh.program(changed)));
  });

  test('places move with the text', async () => {
    texts.length = 0;
    const moved = `// A comment\n${functionText()}`;
    const tree = await parser.program(moved);
    expect(texts.length).toBeLessThan(3);
    expect(JSON.stringify(tree)).toBe(JSON.stringify(await fresh.program(moved)));
  });

  test('an error is found, and its correction too', async () => {
    const broken = functionText().replace('return res.body', 'return )');
    const line = broken.split('\n').findIndex((one) => one.includes('return )')) + 1;
    await expect(parser.program(broken)).rejects.toMatchObject({ code: 'syntax', line });
    await expect(parser.program(functionText(2))).resolves.toMatchObject({ kind: 'program' });
  });

  test('warming reads nothing into the trees', async () => {
    await fresh.warm();
    await expect(fresh.program('a := 1')).resolves.toMatchObject({ kind: 'program' });
  });
});
