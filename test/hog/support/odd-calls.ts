import { build, type Expr } from '../../../hog/ast/index.ts';
import { writtenFunctions } from '../../../hog/javascript/written.ts';
import { library } from '../../../hog/runtime/stl.ts';
import { Random } from './random.ts';

const { array, call, constant, dict, field, float, integer, lambda, tuple } = build;

/** Values of every type, none of them made for the function that gets it. */
export const ODD: readonly Expr[] = [
  constant(null),
  constant(true),
  constant(false),
  integer(0),
  integer(3),
  integer(-1),
  float(1.5),
  float(1e30),
  float(Number.NaN),
  float(Number.POSITIVE_INFINITY),
  constant(''),
  constant('text'),
  constant('%'),
  constant('(😀'),
  constant('2024-02-30'),
  constant('0x10'),
  constant('{"a": [1]}'),
  array([]),
  array([integer(1), constant('a'), constant(null), array([integer(2)])]),
  tuple([integer(1), constant('b')]),
  dict([]),
  dict([[constant('a'), dict([[constant('b'), integer(1)]])]]),
  call('toDate', constant('2024-02-29')),
  call('toDateTime', constant('2024-02-29T12:30:00Z')),
  call('Error', constant('message'), array([integer(1)])),
  lambda(['x'], field('x')),
  field('length'),
];

interface OddCall {
  name: string;
  text: string;
  node: Expr;
}

/** Calls each library function with odd arguments: all values one by one and in pairs, and a choice of the others. */
export function* oddCalls(perFunction: number): Generator<OddCall> {
  const random = new Random(7);
  for (const [name, most] of [
    ...[...library].map(([key, { maxArgs }]) => [key, maxArgs ?? 4] as const),
    ...[...writtenFunctions].map(([key, { arity }]) => [key, arity] as const),
  ].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    const lists: Expr[][] = [[], ...ODD.map((one) => [one])];
    for (let count = 2; count <= most + 1; count++) {
      for (let i = 0; i < perFunction; i++) {
        lists.push(Array.from({ length: count }, () => random.pick(ODD)));
      }
    }
    for (const args of lists) {
      const node = call(name, ...args);
      yield { name, node, text: `${name}(${args.map((one) => textOf(one)).join(', ')})` };
    }
  }
}

function textOf(node: Expr): string {
  if (node.kind === 'constant')
    return typeof node.value === 'string' ? `'${node.value}'` : String(node.value);
  if (node.kind === 'call') return `${node.name}(${node.args.map(textOf).join(', ')})`;
  return node.kind === 'field' ? node.chain.join('.') : node.kind;
}

/** What only JavaScript says, never a person. */
export const JAVASCRIPT_WORDS =
  /is not a function|is not iterable|Cannot (?:read|convert|set|mix|access|destructure|assign)|undefined|Invalid (?:array|string|count|date|time value)|not a constructor|is not defined|in JSON at|JSON\.parse|Unexpected (?:token|end|non|number)|valid JSON"|"\[object|object Object|must be (?:of type|a )|Received|URI malformed|Converting circular|circular structure|must not be|Reduce of empty|out of range|is not an? (?:object|valid)|ERR_|argument must|prototype|NaN is|call stack|BigInt|Symbol/i;
