import { afterAll, beforeAll, expect, test } from '@jest/globals';
import { createFunctionCompiler, type FunctionCompiler } from '../../../functions/compiler.ts';
import { findTemplate } from '../../../functions/templates/index.ts';
import type { Template } from '../../../functions/templates/template.ts';
import { Transformations, WHOLE_ROOM } from '../../../functions/transform/apply.ts';
import type { Transformation } from '../../../functions/transform/definition.ts';
import { isNative } from '../../../functions/transform/native.ts';
import { Tally } from '../../../functions/transform/tally.ts';
import { PATIENCE } from '../../support/eventually.ts';

let compiler: FunctionCompiler;
beforeAll(() => {
  compiler = createFunctionCompiler({ threads: 1, timeoutMs: PATIENCE });
});
afterAll(() => compiler.close());

/** Random numbers that are the same each time. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const NAMES = [
  'email',
  'user',
  'a.b',
  '$set',
  '$set_once',
  '$current_url',
  '$ip',
  '$geoip_disable',
  '__proto__',
];
const MORE = ['', ' ', '1', 'x y', 'constructor', 'Ünï', '$referrer', 'b', 'a', '__hogDate__'];
const PARTS = [
  'https://a.test/',
  '?',
  '#',
  '&',
  '=',
  'email=ada%40b.test',
  'Email',
  '%65mail=1',
  '%zz',
  'token',
  'a=b=c',
];

class Generator {
  readonly #random: (below: number) => number;

  constructor(seed: number) {
    this.#random = randomOf(seed);
  }

  one<T>(list: readonly T[]): T {
    return list[this.#random(list.length)] as T;
  }

  list<T>(most: number, make: () => T): T[] {
    return Array.from({ length: this.#random(most + 1) }, make);
  }

  name = (): string => this.one([...NAMES, ...NAMES, ...MORE]);
  url = (): string => this.list(9, () => this.one(PARTS)).join('');

  value(depth: number): unknown {
    const kind = this.#random(depth > 2 ? 7 : 10);
    if (kind < 3) return this.url();
    if (kind === 3) return this.one([0, 1, -1.5, 1e21, true, false, '', '\u{1f600}', '81.2.69.142']);
    if (kind === 4) return null;
    if (kind < 7) return this.one(['x', 'ada@shop.test', ' spaced ']);
    if (kind === 7) return this.list(3, () => this.value(depth + 1));
    return this.object(depth + 1);
  }

  object(depth: number): Record<string, unknown> {
    // As JSON has them: `__proto__` is a key like any other.
    const entries = this.list(
      6,
      () => `${JSON.stringify(this.name())}:${JSON.stringify(this.value(depth)) ?? 'null'}`,
    );
    return JSON.parse(`{${entries.join(',')}}`);
  }

  /** Properties of which some are those that templates look at. */
  event(): Record<string, unknown> {
    const properties = this.object(0);
    for (const key of this.list(3, () => this.one(['$current_url', '$referrer', 'email', '$set', '$ip']))) {
      if (key === '$ip') properties[key] = this.one(['81.2.69.142', '10.0.0.1', '', 5]);
      else if (key === '$set') properties[key] = { $current_url: this.url(), email: 'x' };
      else properties[key] = this.url();
    }
    return properties;
  }

  names = (): string =>
    this.list(4, () =>
      this.one([...NAMES, 'user.email', 'a.b.c', '$set.email', ' email ', '.', 'a..b', '']),
    ).join(this.one([',', ', ', ' ,,']));
}

const INPUTS: Record<string, (random: Generator) => Record<string, unknown>> = {
  'template-geoip': () => ({}),
  'template-filter-properties': (random) => ({ propertiesToFilter: random.names() || 'email' }),
  'template-url-masking': (random) => ({
    urlProperties: {
      [random.name() === '__proto__' ? 'x' : '$current_url']: 'email, TOKEN ,a',
      ...(random.names().length > 8 ? { $set: 'email', email: 'token', user: '' } : { $referrer: 'a,b' }),
    },
    maskWith: random.one(['[REDACTED]', '', ' ', '&=?']),
  }),
};

async function both(
  id: string,
  values: Record<string, unknown>,
): Promise<[native: Transformations, program: Transformations]> {
  const { hog, inputs_schema } = findTemplate(id) as Template;
  const inputs = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, { value }]));
  const compiled = await compiler.compile(1, {
    ...{ type: 'transformation', secrets: { inputs: {}, mappings: [] }, isEnabled: true },
    ...{ testAccounts: [], actions: [], now: Date.now(), timezone: 'UTC' },
    content: { hog, inputs_schema, inputs: inputs as never, filters: {}, masking: null, mappings: null },
  });
  const one: Transformation = {
    ...{ id: 'one', name: id, version: 1, onError: 'refuse', filters: ['_H', 1, 29], native: hog },
    ...{ inputs: compiled.inputs, given: {}, secret: [], problem: null },
    program: await compiler.program(1, hog),
  };
  const place = (address: unknown) =>
    address === '81.2.69.142' ? { $geoip_city_name: 'London' } : undefined;
  return [one, { ...one, native: null }].map(
    (each) =>
      new Transformations(
        { projectId: 1, version: 1, url: '', transformations: [each], size: 0 },
        { clock: () => performance.now(), room: WHOLE_ROOM, place },
      ),
  ) as [Transformations, Transformations];
}

test.each(Object.keys(INPUTS))(
  '%s does the same as its program, by heart',
  async (id) => {
    expect(isNative((findTemplate(id) as Template).hog)).toBe(true);
    let changed = 0;
    for (let round = 0; round < 12; round += 1) {
      const random = new Generator(round * 7_919 + id.length);
      const values = (INPUTS[id] as (random: Generator) => Record<string, unknown>)(random);
      const [native, program] = await both(id, values);
      for (let index = 0; index < 250; index += 1) {
        const properties = random.event();
        const event = {
          ...{ uuid: '0197a3c0-1111-7000-8000-000000000001', event: 'seen', distinct_id: 'ada' },
          ...{ timestamp: 1_767_000_000_000, received_at: 1_767_000_000_000 },
        };
        const results = [native, program].map((each) => {
          const tally = new Tally();
          const given = JSON.parse(JSON.stringify(properties));
          const applied = each.apply({ ...event, properties: given }, new Map(), tally);
          // Nothing that was given is changed in place.
          expect(JSON.stringify(given)).toBe(JSON.stringify(properties));
          if (applied.verdict !== 'kept') return [applied.verdict, tally.told.counts];
          const names = applied.changes.flatMap((one) => one.properties).toSorted();
          return ['kept', JSON.stringify(applied.properties), names, tally.told.counts];
        });
        expect([values, properties, results[0]]).toEqual([values, properties, results[1]]);
        if ((results[0]?.[2] as unknown[] | undefined)?.length) changed += 1;
      }
    }
    // The test would prove little if nothing ever changed.
    expect(changed).toBeGreaterThan(100);
  },
  60_000,
);
