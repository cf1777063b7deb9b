// All functions of HogQL, and the printing of their calls.
import type { Call } from '../../ast/index.ts';
import { printExpr } from '../dispatch.ts';
import { fault, quote, suggestion } from '../errors.ts';
import type { Place } from '../printer.ts';
import type { Value } from '../types.ts';
import { AGGREGATES, printAggregateCall } from './aggregates.ts';
import { ARRAYS } from './arrays.ts';
import { CONVERSION } from './conversion.ts';
import { DATES } from './dates.ts';
import { JSONS } from './json.ts';
import { LOGIC } from './logic.ts';
import { MATH } from './math.ts';
import { PRODUCT } from './product.ts';
import { type FunctionSpec, type FunctionTable, MANY } from './spec.ts';
import { STRINGS } from './strings.ts';
import { URLS } from './urls.ts';
import { windowFunction } from './windows.ts';

/** The functions by their sections in docs/hogql.md. */
export const FUNCTION_KINDS: Readonly<Record<string, FunctionTable>> = {
  'Nulls, conditions, comparisons': LOGIC,
  Conversion: CONVERSION,
  'Text and patterns': STRINGS,
  URLs: URLS,
  JSON: JSONS,
  'Dates and times': DATES,
  Numbers: MATH,
  'Arrays, tuples, maps': ARRAYS,
  'Of this product': PRODUCT,
};

export const FUNCTIONS: FunctionTable = Object.assign({}, ...Object.values(FUNCTION_KINDS));

/** Functions whose names are not case-sensitive, as in ClickHouse and SQL. */
const FOLDED = new Set(
  `lower upper concat substring replace extract position coalesce ifNull nullIf isNull if not least greatest length
  reverse now trim ascii round floor ceil trunc abs sqrt exp ln log log2 log10 sin cos tan asin acos atan pow power sign
  degrees radians factorial left right cast sortableSemver date_trunc date_part date_add date_diff date_bin to_char
  to_timestamp to_date make_date current_date current_timestamp char_length octet_length split_part strpos substr lpad
  rpad ltrim rtrim btrim repeat initcap mod cbrt width_bucket`.split(/\s+/),
);
const BY_LOWER_CASE = new Map(
  Object.keys(FUNCTIONS)
    .filter((name) => FOLDED.has(name) || name === 'CAST')
    .map((name) => [name.toLowerCase(), name]),
);

function find(name: string): FunctionSpec | null {
  const exact = Object.hasOwn(FUNCTIONS, name) ? name : BY_LOWER_CASE.get(name.toLowerCase());
  return exact === undefined ? null : (FUNCTIONS[exact] as FunctionSpec);
}

const knownNames = (): string[] => [
  ...Object.keys(FUNCTIONS),
  ...Object.keys(AGGREGATES),
  ...Object.keys(AGGREGATES).map((name) => `${name}If`),
];

export function printCall(place: Place, node: Call): Value {
  const spec = find(node.name);
  if (!spec) {
    const aggregate = printAggregateCall(place, node);
    if (aggregate) return aggregate;
    if (windowFunction(node.name)) {
      throw fault(`${node.name} needs a window: ${node.name}(…) OVER (…)`, node.span);
    }
    throw fault(
      `Unsupported function call ${quote(`${node.name.slice(0, 50)}(...)`)}${suggestion(node.name, knownNames())}`,
      node.span,
    );
  }
  checkCall(node, spec);
  if (spec.lazy) return spec.lazy(place, node);
  const args = node.args.map((one) => printExpr(place, one));
  return spec.print!({ place, node, args, span: node.span });
}

function checkCall(node: Call, spec: FunctionSpec): void {
  const { min, max } = spec;
  if (node.args.length < min || node.args.length > max) {
    const range = min === max ? `${min}` : max >= MANY ? `at least ${min}` : `${min} to ${max}`;
    throw fault(`${node.name} takes ${range} arguments, not ${node.args.length}`, node.span);
  }
  if (node.params?.length) throw fault(`${node.name} has no parameters: ${node.name}(…)`, node.span);
  if (node.distinct || node.orderBy || node.filter || node.withinGroup) {
    throw fault(`${node.name} is not an aggregate: it cannot have DISTINCT, ORDER BY or FILTER`, node.span);
  }
}
