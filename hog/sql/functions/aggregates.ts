// Prints calls of aggregates. The last argument of `…If` is its condition. Other combinators, such as `…State`, are
// refused.
import type { Call, Expr } from '../../ast/index.ts';
import { printCondition, printExpr } from '../dispatch.ts';
import { fault, quote, unsupported } from '../errors.ts';
import type { Place } from '../printer.ts';
import { join, NOTHING, type Sql, sql } from '../sql.ts';
import type { Value } from '../types.ts';
import { AGGREGATES, type Aggregate, count } from './aggregate-specs.ts';
import { MANY } from './spec.ts';

export { AGGREGATES } from './aggregate-specs.ts';

/** Aggregates whose names are not case-sensitive, as in ClickHouse. */
const FOLDED = new Map(
  `count min max sum avg any_value array_agg string_agg json_agg bool_and bool_or every corr median first_value last_value
  percentile_cont percentile_disc stddev_pop stddev_samp var_pop var_samp`
    .split(/\s+/)
    .map((name) => [name, name]),
);

interface FoundAggregate {
  aggregate: Aggregate;
  conditional: boolean;
}

export function findAggregate(name: string): FoundAggregate | null {
  const exact = FOLDED.get(name.toLowerCase()) ?? name;
  if (Object.hasOwn(AGGREGATES, exact)) return { aggregate: AGGREGATES[exact]!, conditional: false };
  const base = name.endsWith('If') ? name.slice(0, -2) : '';
  if (Object.hasOwn(AGGREGATES, base)) return { aggregate: AGGREGATES[base]!, conditional: true };
  return null;
}

/** The aggregates that work over a window. Postgres does not allow those that sort or remove duplicates. */
const WINDOWED: ReadonlySet<Aggregate> = new Set(
  [
    'count',
    'sum',
    'avg',
    'min',
    'max',
    'any',
    'stddevPop',
    'stddevSamp',
    'varPop',
    'varSamp',
    'stddev_pop',
    'stddev_samp',
    'var_pop',
    'var_samp',
    'covarPop',
    'covarSamp',
    'corr',
    'groupArray',
    'array_agg',
    'every',
    'bool_and',
    'bool_or',
  ].map((name) => AGGREGATES[name]!),
);

const STATES =
  /(?:State|Merge|MergeState|SimpleState|Array|Map|ForEach|Resample|OrNull|OrDefault|ArgMin|ArgMax)(?:If)?$/;

/**
 * Prints a call of an aggregate, followed by ` over (…)` if it is used over a window. Returns null if the function is
 * not an aggregate.
 */
export function printAggregateCall(place: Place, node: Call, over: Sql = NOTHING): Value | null {
  const found = findAggregate(node.name);
  if (!found) {
    const base = node.name.replace(STATES, '');
    if (base !== node.name && findAggregate(base))
      throw unsupported(`The aggregate ${quote(node.name)}`, node.span);
    return null;
  }
  const { aggregate, conditional } = found;
  const { aggregatesBarred } = place.printer;
  if (aggregatesBarred !== null) throw fault(`${node.name} cannot be used in ${aggregatesBarred}`, node.span);
  const printed = () => {
    if (node.withinGroup && !aggregate.within) {
      throw fault(`${node.name} takes no WITHIN GROUP`, node.span);
    }
    if (aggregate.within && !node.withinGroup) {
      throw fault(`${node.name} needs WITHIN GROUP (ORDER BY …)`, node.span);
    }
    const own = conditional ? node.args.slice(0, -1) : node.args;
    const star = aggregate === count && own.length === 1 && isStar(own[0]!);
    if (own.length < aggregate.min || own.length > aggregate.max || (conditional && node.args.length === 0)) {
      throw fault(`${node.name} takes ${describe(aggregate, conditional)}`, node.span);
    }
    const [fewest, most] = aggregate.params ?? [0, 0];
    const params = (node.params ?? []).map((one) => printExpr(place, one));
    if (params.length < fewest || params.length > most) {
      throw fault(
        `${node.name} takes ${fewest === most ? fewest : `${fewest} to ${most}`} parameters`,
        node.span,
      );
    }
    const conditions = [conditional ? node.args.at(-1)! : null, node.filter].filter((one) => one !== null);
    const tests = conditions.map((one) => printCondition(place, one, true));
    const filterOf = (all: Sql[]) =>
      all.length > 0 ? sql` filter (where ${join(all, sql` and `)})${over}` : over;
    if (over !== NOTHING && (node.distinct || !WINDOWED.has(aggregate))) {
      throw unsupported(`${node.name} over a window`, node.span);
    }
    const value = aggregate.print({
      place,
      node: { ...node, args: own },
      args: star ? [] : own.map((one) => typed(printExpr(place, one))),
      params,
      filter: filterOf(tests),
      present: (one) => filterOf([...tests, sql`${one} is not null`]),
      distinct: node.distinct ? sql`distinct ` : NOTHING,
      windowed: over !== NOTHING,
    });
    return value;
  };
  // Over a window, the rows may be groups, so ungrouped fields stay refused. Otherwise the aggregate may use any field.
  if (over !== NOTHING) return printed();
  return place.printer.ungroupedAllowed(() => place.printer.barAggregates('an aggregate', printed));
}

/** Casts a bare NULL to text, because Postgres cannot choose an aggregate for an untyped NULL. */
const typed = (value: Value): Value => (value.type === 'null' ? { ...value, sql: sql`null::text` } : value);

const isStar = (node: Expr): boolean =>
  node.kind === 'field' && node.chain.length === 1 && node.chain[0] === '*';

function describe({ min, max }: Aggregate, conditional: boolean): string {
  const extra = conditional ? 1 : 0;
  const most = max >= MANY ? 'or more' : `to ${max + extra}`;
  return min === max ? `${min + extra} arguments` : `${min + extra} ${most} arguments`;
}
