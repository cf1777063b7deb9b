// Functions for numbers. They yield NULL where there is no result, such as the square root of a negative number.
import { printArithmetic } from '../arithmetic.ts';
import { coerce, coerced } from '../coerce.ts';
import { type Sql, sql } from '../sql.ts';
import { custom, type FunctionSpec, type FunctionTable, of } from './spec.ts';

const arithmetic = (op: '+' | '-' | '*' | '/' | '%') =>
  custom(2, 2, ({ place, args, span }) => printArithmetic(place, op, args[0]!, args[1]!, span));

const real = (name: Sql): FunctionSpec => of('f', 'float', (value) => sql`${name}(${value})`);

/** Declares a function that returns an integer for an integer. */
const keeping = (make: (value: Sql) => Sql) =>
  custom(1, 1, ({ place, args, span }) => {
    const value = coerce(place, args[0]!, 'number', span);
    return { sql: make(value.sql), type: value.type };
  });

const rounding = (name: Sql) =>
  custom(1, 2, ({ place, args, span }) => {
    const value = coerce(place, args[0]!, 'number', span);
    const places = args[1] ? coerced(place, args[1], 'int', span) : sql`0::bigint`;
    if (value.type === 'int' && !args[1]) return { sql: value.sql, type: 'int' };
    return { sql: sql`hq.${name}((${value.sql})::float8, ${places})`, type: 'float' };
  });

const bits = (operator: Sql) => of('i i', 'int', (left, right) => sql`(${left} ${operator} ${right})`);
const ln = real(sql`hq.ln`);
const power = of('f f', 'float', (base, exponent) => sql`hq.power(${base}, ${exponent})`);
const truncate = rounding(sql`trunc`);

export const MATH: FunctionTable = {
  plus: arithmetic('+'),
  minus: arithmetic('-'),
  multiply: arithmetic('*'),
  divide: arithmetic('/'),
  modulo: arithmetic('%'),
  mod: arithmetic('%'),
  intDiv: of('n n', 'int', (left, right) => sql`hq.int_div((${left})::numeric, (${right})::numeric)`),
  intDivOrZero: of(
    'n n',
    'int',
    (left, right) => sql`coalesce(hq.int_div((${left})::numeric, (${right})::numeric), 0)`,
  ),
  moduloOrZero: custom(2, 2, ({ place, args, span }) => {
    const made = printArithmetic(place, '%', args[0]!, args[1]!, span);
    const divisor = coerced(place, args[1]!, 'float', span);
    return { sql: sql`(case when ${divisor} = 0 then 0 else ${made.sql} end)`, type: made.type };
  }),
  positiveModulo: of(
    'i i',
    'int',
    (left, right) => sql`mod(mod(${left}, nullif(${right}, 0)) + abs(${right}), nullif(${right}, 0))`,
  ),
  negate: keeping((value) => sql`(- ${value})`),
  abs: keeping((value) => sql`abs(${value})`),
  round: rounding(sql`round`),
  // Halves go to the even neighbour, also behind the point.
  roundBankers: of('f i?', 'float', (value, places) => {
    if (!places) return sql`round(${value})`;
    const scale = sql`hq.power(10, greatest(least(${places}, 18), -18)::float8)`;
    // `least` ignores NULL.
    return sql`(case when ${places} is not null then round(${value} * ${scale}) / ${scale} end)`;
  }),
  floor: rounding(sql`floor`),
  ceil: rounding(sql`ceil`),
  ceiling: rounding(sql`ceil`),
  trunc: truncate,
  truncate,
  exp: real(sql`hq.exp`),
  log: ln,
  ln,
  exp2: of('f', 'float', (value) => sql`hq.power(2::float8, ${value})`),
  exp10: of('f', 'float', (value) => sql`hq.power(10::float8, ${value})`),
  log2: of('f', 'float', (value) => sql`(hq.ln(${value}) / ln(2::float8))`),
  log10: real(sql`hq.log10`),
  log1p: of('f', 'float', (value) => sql`hq.ln(1 + ${value})`),
  sqrt: real(sql`hq.sqrt`),
  cbrt: real(sql`cbrt`),
  pow: power,
  power,
  sign: of('n', 'int', (value) => sql`sign(${value})::bigint`),
  pi: custom(0, 0, () => ({ sql: sql`pi()`, type: 'float', certain: true })),
  e: custom(0, 0, () => ({ sql: sql`exp(1::float8)`, type: 'float', certain: true })),
  sin: real(sql`sin`),
  cos: real(sql`cos`),
  tan: real(sql`tan`),
  asin: real(sql`hq.asin`),
  acos: real(sql`hq.acos`),
  atan: real(sql`atan`),
  atan2: of('f f', 'float', (y, x) => sql`atan2(${y}, ${x})`),
  sinh: real(sql`sinh`),
  cosh: real(sql`cosh`),
  tanh: real(sql`tanh`),
  asinh: real(sql`asinh`),
  acosh: of('f', 'float', (value) => sql`(case when ${value} >= 1 then acosh(${value}) end)`),
  atanh: of('f', 'float', (value) => sql`(case when abs(${value}) <= 1 then atanh(${value}) end)`),
  hypot: of('f f', 'float', (x, y) => sql`sqrt(${x} * ${x} + ${y} * ${y})`),
  width_bucket: of(
    'f f f i',
    'int',
    (value, low, high, count) =>
      sql`(case when ${low} < ${high} and ${count} > 0 then width_bucket(${value}, ${low}, ${high}, hq.count_of(${count}))::bigint end)`,
  ),
  degrees: real(sql`degrees`),
  radians: real(sql`radians`),
  gcd: of('i i', 'int', (left, right) => sql`gcd(${left}, ${right})`),
  lcm: of('i i', 'int', (left, right) => sql`lcm(${left}, ${right})`),
  factorial: of('i', 'int', (value) => sql`hq.factorial(${value})`),
  bitAnd: bits(sql`&`),
  bitOr: bits(sql`|`),
  bitXor: bits(sql`#`),
  bitNot: of('i', 'int', (value) => sql`(~ ${value})`),
  bitShiftLeft: of('i i', 'int', (value, by) => sql`(${value} << hq.count_of(${by}))`),
  bitShiftRight: of('i i', 'int', (value, by) => sql`(${value} >> hq.count_of(${by}))`),
  bitTest: of('i i', 'int', (value, at) => sql`((${value} >> hq.count_of(${at})) & 1)`),
  bitCount: of('i', 'int', (value) => sql`bit_count(int8send(${value}))`),
  bitHammingDistance: of('i i', 'int', (one, other) => sql`bit_count(int8send(${one} # ${other}))`),
  ifNotFinite: of(
    'f f',
    'float',
    (value, other) =>
      sql`(case when ${value} in ('NaN'::float8, 'Infinity', '-Infinity') then ${other} else ${value} end)`,
  ),
  isNaN: of('f', 'bool', (value) => sql`(${value} = 'NaN'::float8)`),
  isFinite: of(
    'f',
    'bool',
    (value) => sql`(${value} not in ('NaN'::float8, 'Infinity'::float8, '-Infinity'::float8))`,
  ),
  isInfinite: of('f', 'bool', (value) => sql`(${value} in ('Infinity'::float8, '-Infinity'::float8))`),
};
