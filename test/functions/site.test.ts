import vm from 'node:vm';
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { compileFunction } from '../../functions/compile.ts';
import { NO_SECRETS } from '../../functions/reads/secrets.ts';
import type { Content } from '../../functions/rules/definition.ts';
import { createOwnParser, type Parser } from '../../hog/parser/index.ts';

let parser: Parser;
beforeAll(async () => {
  ({ parser } = await createOwnParser());
});
afterAll(() => parser.close());

type Page = {
  seen: unknown[];
  init(options: { posthog?: object; callback?: (ok: boolean) => void }): {
    processEvent(globals: object): void;
  };
};

const string = (key: string) => ({
  key,
  type: 'string' as const,
  required: false,
  secret: false,
  hidden: false,
});

async function compiled(
  hog: string,
  content: Partial<Content> = {},
  type: 'site_destination' | 'site_app' = 'site_destination',
) {
  return compileFunction(parser, {
    ...{ type, secrets: NO_SECRETS, isEnabled: true, testAccounts: [], actions: [], now: 0, timezone: 'UTC' },
    content: { hog, inputs_schema: [], inputs: {}, filters: {}, masking: null, mappings: null, ...content },
  });
}

/** Evaluates a function as a page does, in a context that has nothing else. */
async function load(
  hog: string,
  content: Partial<Content> = {},
  type?: 'site_destination' | 'site_app',
): Promise<Page> {
  const { transpiled } = await compiled(hog, content, type);
  const seen: unknown[] = [];
  const context = vm.createContext({ seen, console: { error: () => undefined } });
  const { init } = vm.runInContext(`(${transpiled})()`, context);
  return { seen, init };
}

const event = (name: string, properties = {}) => ({
  event: { event: name, distinct_id: 'ada', properties },
  person: { properties: { email: 'ada@x.io' } },
  groups: {},
});
const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

describe('a function for browsers', () => {
  test('is TypeScript that becomes JavaScript', async () => {
    const page = await load(
      `type Input = { inputs: { a: string }; posthog?: unknown };
       export async function onLoad({ inputs }: Input): Promise<void> { seen.push(inputs.a as string); }`,
      { inputs_schema: [string('a')], inputs: { a: { value: 'hi </script> {person.properties.plan}' } } },
      'site_app',
    );
    const answers: boolean[] = [];
    page.init({
      posthog: { get_property: () => ({ plan: 'gold' }) },
      callback: (ok) => answers.push(ok),
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect(page.seen).toEqual(['hi </script> gold']);
    expect(answers).toEqual([true]);
    const { transpiled } = await compiled('export const onLoad = () => {}', {
      inputs_schema: [string('a')],
      inputs: { a: { value: '</script>' } },
    });
    expect(transpiled).not.toContain('</script>');
  });

  test('runs for the events that its filters choose, with inputs that read each other', async () => {
    const page = await load(
      'export function onEvent({ inputs, event }) { seen.push([event.event, inputs]) }',
      {
        inputs_schema: [string('b'), string('a')],
        inputs: { a: { value: '{event.properties.n}' }, b: { value: 'b {inputs.a}' } },
        filters: { events: [{ id: 'paid', type: 'events' }] },
      },
    );
    const { processEvent } = page.init({});
    processEvent(event('seen', { n: 1 }));
    processEvent(event('paid', { n: 2 }));
    expect(plain(page.seen)).toEqual([['paid', { a: 2, b: 'b 2' }]]);
  });

  test('runs once for each mapping that matches and is not disabled', async () => {
    const mapping = (name: string, id: string, more = {}) => ({
      ...{ name, inputs_schema: [string('m')], inputs: { m: { value: `${name} {event.distinct_id}` } } },
      filters: { events: [{ id, type: 'events' }] },
      ...more,
    });
    const page = await load('export function onEvent({ inputs }) { seen.push(inputs.m) }', {
      mappings: [mapping('a', 'paid'), mapping('b', 'other'), mapping('c', 'paid', { disabled: true })],
    });
    page.init({}).processEvent(event('paid'));
    expect(page.seen).toEqual(['a ada']);
  });

  test('tells when it cannot be loaded', async () => {
    const page = await load(
      "export function onLoad() { return Promise.reject(new Error('no')) }",
      {},
      'site_app',
    );
    const answers: boolean[] = [];
    page.init({ callback: (ok) => answers.push(ok) });
    await new Promise((resolve) => setImmediate(resolve));
    expect(answers).toEqual([false]);
  });

  test('goes on when an input cannot be computed', async () => {
    const page = await load('export function onEvent({ inputs }) { seen.push(inputs) }', {
      inputs_schema: [string('a'), string('b')],
      inputs: { a: { value: '{nobody.knows}' }, b: { value: 'fine' } },
    });
    page.init({}).processEvent(event('paid'));
    expect(plain(page.seen)).toEqual([{ a: null, b: 'fine' }]);
  });

  test.each([
    ['export function onLoad({ {}', /^Unexpected token.* \(line 1, column 28\)\nexport.*\n {27}\^$/],
    ['let a: number = 1;\n\nlet a = 2;', /^Identifier 'a' has already been declared \(line 3\)\nlet a = 2;$/],
    [
      `let a = 1; let a = '${'x'.repeat(500)}';`,
      /^Identifier 'a' .* \(line 1\)\nlet a = 1; let a = 'x{80}…$/,
    ],
    ['('.repeat(50_000), /nested too deep/],
  ])('that is wrong is refused with the place: %#', async (hog, reason) => {
    const refused = await compiled(hog).catch((error) => error.fault);
    expect(refused).toMatchObject({ field: 'hog', message: 'Error in TypeScript code' });
    expect(refused.reason).toMatch(reason);
  });
});
