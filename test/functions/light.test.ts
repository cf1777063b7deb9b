import { describe, expect, test } from '@jest/globals';
import { isLight } from '../../functions/delivery/light.ts';
import { stepWithin } from '../../functions/run.ts';
import { compileBytecode } from '../../hog/bytecode/index.ts';
import { createParser } from '../../hog/parser/index.ts';

const parser = await createParser();
const compiled = async (hog: string) => compileBytecode(await parser.program(hog));
const item = (properties: object) => ({
  ...{ globals: { event: { properties } }, frame: { now: 0, seed: 1 }, given: {}, answers: [] },
});

describe('a program is light', () => {
  const cases: [hog: string, light: boolean][] = [
    ["fetch(inputs.url, {'body': {'id': event.uuid}})", true],
    ["if (event.event == 'paid') { print(lower(event.event)) }", true],
    ["return event.event =~ 'a+'", false],
    ["return match(event.event, 'a+')", false],
    ["return replaceAll(event.event, 'a', 'b')", false],
    ['fun twice(x) { return x * 2 } return twice(2)', false],
  ];
  test.each(cases)('%s: %s', async (hog, light) => {
    expect(isLight(await compiled(hog), {})).toBe(light);
  });

  test('unless an input is Liquid', async () => {
    const inputs = { url: { value: '{{ event.uuid }}', templating: 'liquid' as const } };
    expect(isLight(await compiled('return 1'), inputs)).toBe(false);
  });
});

describe('a step within little room', () => {
  const room = { limits: { maxSteps: 20_000, maxMemory: 1024 * 1024 } };

  test('says that it needs more', async () => {
    const bytecode = await compiled('let n := 0; while (true) { n := n + 1 }');
    expect(stepWithin({ bytecode, inputs: {} }, item({}), room)).toMatchObject({
      ...{ status: 'failed', isHeavy: true },
    });
  });

  test('fails as it would with more room if the program fails', async () => {
    const bytecode = await compiled("throw Error('no')");
    expect(stepWithin({ bytecode, inputs: {} }, item({}), room)).toMatchObject({
      ...{ status: 'failed', isHeavy: false },
    });
  });

  test('leaves what the program sees as it was', async () => {
    const bytecode = await compiled('let p := event.properties; p.plan := 2; fetch(p.plan); return p.plan');
    const given = item({ plan: 1 });
    const step = stepWithin({ bytecode, inputs: {} }, given, room);
    expect(step).toMatchObject({ status: 'waits', call: { name: 'fetch', args: [2] } });
    expect(given.globals.event.properties).toEqual({ plan: 1 });
  });
});
