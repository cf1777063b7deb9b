import { build, type Expr } from '../../hog/ast/index.ts';
import type { Parser } from '../../hog/parser/index.ts';
import { hasAggregate, selection } from '../../hog/sql/index.ts';
import { selectText } from '../../hog/text/index.ts';
import { actionExpression, hogqlSources } from '../../properties/index.ts';
import { NAMING_PROPERTIES } from '../../properties/person-name.ts';
import { instantText } from '../../values/dates.ts';
import {
  type CompiledQuery,
  type EventConditions,
  type EventSource,
  type EventSpan,
  type EventsQuery,
  QueryError,
  type QueryJob,
} from '../rules/request.ts';
import type { Selected } from './columns.ts';
import { givenConditions, instant, instantOf, momentOf, propertyCondition } from './conditions.ts';
import { of } from './faults.ts';
import { print } from './hogql.ts';
import { bare, blaming, type Column, compileListing, parsed, type SpecialColumn } from './listed.ts';

/** How far into the future events are shown without `before`, because the clocks of clients may be ahead. */
const AHEAD_MILLISECONDS = 5_000;
const DEFAULT_AFTER = '-24h';

const { field, call, constant } = build;
const names = (...list: string[]): Record<string, Expr> =>
  Object.fromEntries(list.map((one) => [one, field(one)]));

export const personName = (properties: readonly string[], otherwise: Expr): Expr =>
  call(
    'coalesce',
    ...NAMING_PROPERTIES.map((one) =>
      call('nullIf', call('trim', call('toString', field(...properties, one))), constant('')),
    ),
    otherwise,
  );

const SPECIAL: Readonly<Record<string, SpecialColumn>> = {
  '*': {
    of: 'event',
    type: 'Tuple',
    parts: names(
      'uuid',
      'event',
      'properties',
      'timestamp',
      'team_id',
      'distinct_id',
      'elements_chain',
      'created_at',
    ),
  },
  person: {
    of: 'person',
    type: 'Tuple',
    parts: {
      uuid: field('person', 'id'),
      created_at: field('person', 'created_at'),
      properties: field('person', 'properties'),
      distinct_id: field('distinct_id'),
    },
  },
  person_display_name: {
    of: 'display name',
    type: 'Tuple',
    order: 'display_name',
    parts: {
      display_name: personName(['person', 'properties'], field('distinct_id')),
      id: field('person', 'id'),
      distinct_id: field('distinct_id'),
    },
  },
};

/** Compiles a list of events, or of groups of events if it has aggregates. */
export async function compileEvents(parser: Parser, job: QueryJob, request: EventsQuery): Promise<Selected> {
  return compileListing(parser, job, {
    table: 'events',
    select: request.select,
    special: SPECIAL,
    where: [...spanned(spanOf(request, job)), ...(await conditions(parser, job, request))],
    tests: await parsed(parser, request.where ?? [], 'query__where'),
    orderBy: request.orderBy,
    defaultOrder,
    unique: 'uuid',
    isPaged: request.span !== undefined,
    limit: request.limit,
    offset: request.offset,
  });
}

/** The columns of an event as it is stored. */
const STORED = ['uuid', 'event', 'distinct_id', 'properties', 'timestamp', 'elements_chain', 'inserted_at'];

/** Compiles conditions to a relation of the events that pass them. */
export async function compileEventSource(
  parser: Parser,
  job: QueryJob,
  request: EventSource,
): Promise<CompiledQuery> {
  const tests = await parsed(parser, request.where ?? [], 'where');
  const given = [...spanned(request.span ?? {}), ...(await conditions(parser, job, request))];
  const grouped = tests.find((one) => hasAggregate(one.expr));
  if (grouped) throw new QueryError(grouped.field, 'An aggregate needs `select`: single events have none.');
  return of('query', async () => {
    const where = build.and([...given, ...tests.map((one) => one.expr)]);
    const tree = selection({ table: 'events', select: STORED.map((one) => field(one)), where });
    const { text, values } = await blaming(tests, 'events', job, () => print(tree, job, { rows: null }));
    return { text, values, columns: [], width: 0, page: null, place: null, hogql: selectText(tree) };
  });
}

const timestamp = field('timestamp');

/** Builds the conditions of a span. */
function spanned({ after, before, position, storedBefore }: EventSpan): Expr[] {
  const { compare } = build;
  return [
    ...(after === undefined ? [] : [compare('>', timestamp, instant(after))]),
    ...(before === undefined ? [] : [compare('<', timestamp, instant(before))]),
    ...(position === undefined ? [] : behind(position)),
    ...(storedBefore === undefined ? [] : [compare('<', field('inserted_at'), instant(storedBefore))]),
  ];
}

/** Builds the conditions of what comes behind an event. The first one alone can use an index by time. */
function behind({ timestamp: at, uuid, ascending }: NonNullable<EventSpan['position']>): Expr[] {
  const { compare, or } = build;
  const op = ascending ? '>' : '<';
  return [
    compare(`${op}=`, timestamp, instant(at)),
    or([compare(op, timestamp, instant(at)), compare(op, field('uuid'), call('toUUID', constant(uuid)))]),
  ];
}

/** The span of a list that is not read page by page. */
function spanOf({ span, after, before }: EventsQuery, job: QueryJob): EventSpan {
  if (span) return span;
  const moment = momentOf(job);
  const from = instantOf(after ?? DEFAULT_AFTER, moment, 'query__after');
  const to = instantOf(before, moment, 'query__before') ?? job.now + AHEAD_MILLISECONDS;
  return { ...(from !== null && { after: instantText(from) }), before: instantText(to) };
}

async function conditions(parser: Parser, job: QueryJob, request: EventConditions): Promise<Expr[]> {
  const { event, events, distinctId, personId, filterTestAccounts } = request;
  const named = [...(event ? [event] : []), ...(events ?? [])];
  const scope = 'events';
  return [
    ...(named.length > 0
      ? [build.compare('in', field('event'), build.tuple(named.map((one) => constant(one))))]
      : []),
    ...(distinctId ? [build.compare('==', field('distinct_id'), constant(distinctId))] : []),
    ...(personId ? [build.compare('==', field('person_id'), constant(personId))] : []),
    ...(await actionCondition(parser, job, request)),
    ...(filterTestAccounts
      ? await propertyCondition(job.testAccounts, {
          ...{ parser, job, scope, field: 'query__filterTestAccounts' },
        })
      : []),
    ...(await givenConditions(request, { parser, job, scope })),
  ];
}

function actionCondition(
  parser: Pick<Parser, 'expression'>,
  job: QueryJob,
  { actionId }: EventConditions,
): Promise<Expr[]> {
  return of('query__actionId', async () => {
    if (actionId === null || actionId === undefined) return [];
    const { actionSteps: steps } = job;
    if (!steps) throw new QueryError('query__actionId', `There is no action ${actionId} in this project.`);
    const hogql = new Map<string, Expr>();
    for (const source of steps.flatMap(({ properties }) => (properties ? hogqlSources(properties) : []))) {
      hogql.set(source, await parser.expression(source));
    }
    return [actionExpression(steps, { moment: momentOf(job), scope: 'events', hogql })];
  });
}

const writtenIn = (columns: readonly Column[]): Expr[] =>
  columns.flatMap(({ written }) => (written ? [bare(written.expr)] : []));

/** What is counted, or else the first aggregate. */
export function mostOf(columns: readonly Column[]): Expr | undefined {
  const counted = writtenIn(columns).filter(hasAggregate);
  const count = counted.find((one) => one.kind === 'call' && one.name === 'count' && one.args.length === 0);
  return count ?? counted[0];
}

/** Most first where events are counted, otherwise newest first. */
function defaultOrder(columns: readonly Column[]): { expr: Expr; order: 'ASC' | 'DESC' }[] {
  const exprs = writtenIn(columns);
  const most = mostOf(columns);
  if (most) return [{ expr: most, order: 'DESC' }];
  const isTimed = columns.some(({ name }) => ['*', 'timestamp'].includes(name));
  if (isTimed) {
    return [{ expr: field('timestamp'), order: 'DESC' }];
  }
  return exprs[0] ? [{ expr: exprs[0], order: 'ASC' }] : [{ expr: field('timestamp'), order: 'DESC' }];
}
