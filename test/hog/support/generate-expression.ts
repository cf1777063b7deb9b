import { build, COMPARE_OPERATORS, type CompareOperator, type Expr } from '../../../hog/ast/index.ts';
import { library } from '../../../hog/runtime/stl.ts';
import type { Random } from './random.ts';

const { access, and, arithmetic, array, between, call, compare, constant, dict, field, float, integer } =
  build;
const { lambda, not, or, tuple } = build;

export const STRINGS = [
  '',
  'a',
  'abc',
  'ABC',
  'A%c',
  'a_c',
  'true',
  'false',
  'null',
  '0',
  '1',
  '1.0',
  '-5',
  '1e3',
  'héllo',
  '😀',
  'two\nlines',
  "it's",
  '2024-02-29',
  '2024-02-29T12:30:00Z',
  '2024-13-45',
  '1.2.3',
  'v1.10.0-beta',
  '[1, 2, {"a": "b"}]',
  '{"a": {"b": [1, "x"]}, "n": null}',
  '{bad json',
  '%',
  '.*',
  '^a',
  '(a|b)+',
  '(',
  'constructor',
  '__proto__',
  'length',
  'UTC',
  'Europe/Berlin',
  'day',
  'month',
  'hour',
  '192.168.0.1',
  '192.168.0.0/24',
  '%Y-%m-%d',
  'aGVsbG8=',
  'hex',
  ' spaced ',
  '__hogDateTime__',
];
const NUMBERS = [0, 1, 2, 3, -1, -2, 10, 0.5, -0.25, 1e6, 1709210000, 2 ** 53];
const KEYS = ['a', 'b', 'n', 'list', 'constructor', '__proto__', 'length', 'toString', 'x y'];
const GLOBALS = ['event', 'properties', 'person', 'list', 'number', 'text', 'flag', 'nothing', 'when'];

/** Random globals, the same shapes every time and other values. */
export function randomGlobals(random: Random): Record<string, unknown> {
  const value = (depth: number): unknown => {
    switch (random.below(depth > 0 ? 8 : 5)) {
      case 0:
        return null;
      case 1:
        return random.chance(0.5);
      case 2:
        return random.pick(NUMBERS);
      case 3:
      case 4:
        return random.pick(STRINGS);
      case 5:
        return random.list(4, () => value(depth - 1));
      case 6:
        return { __hogDateTime__: true, dt: random.pick([0, 1709210000, 1709210000.5]), zone: 'UTC' };
      default:
        // Parsed, so that `__proto__` is a key like any other.
        return JSON.parse(
          `{${random.list(4, () => `${JSON.stringify(random.pick(KEYS))}:${JSON.stringify(value(depth - 1))}`).join(',')}}`,
        );
    }
  };
  const all: Record<string, unknown> = {
    event: random.pick(STRINGS),
    properties: { a: value(2), b: value(1), n: random.pick(NUMBERS), list: random.list(3, () => value(1)) },
    person: random.chance(0.2) ? null : { properties: { email: random.pick(STRINGS), a: value(2) } },
    list: random.list(5, () => value(1)),
    number: random.pick(NUMBERS),
    text: random.pick(STRINGS),
    flag: random.chance(0.5),
    nothing: null,
    when: { __hogDateTime__: true, dt: 1709210000, zone: random.pick(['UTC', 'Europe/Berlin']) },
  };
  if (random.chance(0.1)) delete all.flag;
  return all;
}

const HIGHER = ['arrayMap', 'arrayFilter', 'arrayExists', 'arrayCount'];
/** Not compared: what depends on the moment or on chance. */
const UNSTABLE = new Set(['now', 'today', 'randomFloat', 'generateUUIDv4', 'print', 'range']);
const FUNCTIONS = [...library.values()].filter((one) => !UNSTABLE.has(one.name));
/** Functions that take anything: programs made of the others alone would end at the first. */
const CALM = FUNCTIONS.filter((one) =>
  /^(concat|toString|toInt|toFloat|is(Not)?Null|(not)?[eE]mpty|typeof|coalesce|json(Stringify)|array(Push|Pop|Sort|Reverse).*|has|indexOf|position|substring|startsWith|tuple|lower|if|and|or|not|plus|minus|like|equals|tryDecode.*|JSONExtract.*|isValidJSON|toUUID|Error)$/.test(
    one.name,
  ),
);
const COMPARISONS = COMPARE_OPERATORS.filter((op) => !op.endsWith('cohort')) as CompareOperator[];

/** A random expression; `names` are variables that can be read. */
export function randomExpr(random: Random, depth: number, names: readonly string[] = []): Expr {
  const inner = () => randomExpr(random, depth - 1, names);
  if (depth <= 0 || random.chance(0.15)) return leaf(random, names);
  switch (random.below(17)) {
    case 0:
      return arithmetic(random.pick(['+', '-', '*', '/', '%']), inner(), inner());
    case 1:
    case 2:
    case 3:
      return compare(random.pick(COMPARISONS), inner(), inner());
    case 4:
      return and([inner(), inner(), ...random.list(2, inner)]);
    case 5:
      return or([inner(), inner(), ...random.list(2, inner)]);
    case 6:
      return not(inner());
    case 7:
      return between(inner(), inner(), inner(), random.chance(0.5));
    case 8:
      return array(random.list(4, inner));
    case 9:
      return tuple(random.list(3, inner));
    case 10:
      return dict(
        random.list(3, () => [random.chance(0.8) ? constant(random.pick(KEYS)) : inner(), inner()]),
      );
    case 11: {
      const key = random.chance(0.5) ? constant(random.pick(KEYS)) : integer(random.pick([1, 2, -1, 5]));
      return access(inner(), random.chance(0.8) ? key : safeKey(inner()), random.chance(0.3));
    }
    case 12:
      return call('if', inner(), inner(), inner());
    case 13:
      return random.chance(0.5)
        ? call('ifNull', inner(), inner())
        : call('multiIf', inner(), inner(), inner(), inner(), inner());
    case 14: {
      const body = randomExpr(random, depth - 1, [...names, 'x']);
      return call(random.pick(HIGHER), lambda(['x'], body), random.chance(0.8) ? field('list') : inner());
    }
    default: {
      const fn = random.pick(names.length > 0 && random.chance(0.9) ? CALM : FUNCTIONS);
      const most = fn.maxArgs ?? fn.minArgs + 2;
      const count = fn.minArgs + random.below(most - fn.minArgs + 1) + (random.chance(0.05) ? 1 : 0);
      return call(fn.name, ...Array.from({ length: count }, inner));
    }
  }
}

/** A literal 0 as an index is refused by the compiler. */
const safeKey = (expr: Expr): Expr => (expr.kind === 'constant' && expr.value === 0 ? constant('a') : expr);

function leaf(random: Random, names: readonly string[]): Expr {
  if (names.length > 0 && random.chance(0.4)) return field(random.pick(names));
  switch (random.below(7)) {
    case 0:
      return constant(random.pick([null, true, false]));
    case 1: {
      const number = random.pick(NUMBERS);
      return Number.isInteger(number) && random.chance(0.8) ? integer(number) : float(number);
    }
    case 2:
    case 3:
      return constant(random.pick(STRINGS));
    case 4:
      return field('properties', random.pick(KEYS), ...random.list(1, () => random.pick(KEYS)));
    case 5:
      return field('person', 'properties', random.pick(['email', 'a', 'missing']));
    default:
      return random.chance(0.03) ? field('unknown') : field(random.pick(GLOBALS));
  }
}
