import { parseElementsChain } from '../../capture/elements-chain.ts';
import type { QueryAnswer } from '../../queries/commands/ask.ts';
import type { Composite, OutputColumn } from '../../queries/rules/request.ts';
import { listInPieces } from '../pieces.ts';

/** A value as JSON text. Null: the value is missing. */
type Json = string | null;

/** The distinct ids of persons, by the id of the person as JSON text. */
export type DistinctIds = ReadonlyMap<string, string[]>;

/** The answer as JSON, piece by piece. */
export function answerTexts(
  { columns, rows, page, hasMore, hogql, plan, timings }: QueryAnswer,
  kind: string,
  distinctIds: DistinctIds,
): AsyncGenerator<string> {
  const types = columns.map(({ name, type }) => (kind === 'HogQLQuery' ? [name, type] : type));
  const head = {
    ...{ columns: columns.map((one) => one.name), types, hogql, timings },
    ...(page && { hasMore, limit: page.limit, offset: page.offset }),
    ...(plan && { explain: plan }),
  };
  return rowTexts(head, { columns, rows }, distinctIds);
}

/** Rows as JSON, piece by piece, behind what else an answer says. */
export const rowTexts = (
  head: object,
  { columns, rows }: Pick<QueryAnswer, 'columns' | 'rows'>,
  distinctIds: DistinctIds = new Map(),
): AsyncGenerator<string> =>
  listInPieces(
    `${JSON.stringify(head).slice(0, -1)},"results":[`,
    rows,
    (row) => `[${columns.map((one) => shownValue(one, row, distinctIds)).join(',')}]`,
  );

export function shownValue(
  { from }: OutputColumn,
  row: readonly Json[],
  distinctIds: DistinctIds = new Map(),
): string {
  if (typeof from === 'number') return row[from] ?? 'null';
  return VIEWS[from.of]((key) => row[from.keys[key] as number] ?? null, from, distinctIds);
}

type View = (part: (key: string) => Json, composite: Composite, distinctIds: DistinctIds) => string;

/** A document that the query tells as a text of JSON. */
const documentOf = (text: Json): string => (text === null ? '{}' : JSON.parse(text));

const VIEWS: Readonly<Record<Composite['of'], View>> = {
  event(part, { keys }) {
    const written = Object.keys(keys).map((key) => {
      const value = key === 'properties' ? documentOf(part(key)) : (part(key) ?? 'null');
      return `${JSON.stringify(key)}:${value}`;
    });
    const chain = JSON.parse(part('elements_chain') ?? '""');
    if (chain !== '') written.push(`"elements":${JSON.stringify(parseElementsChain(chain))}`);
    return `{${written.join(',')}}`;
  },
  person(part) {
    const distinctId = `"distinct_id":${part('distinct_id') ?? 'null'}`;
    // There is no such person: its events are anonymous, or it was deleted.
    if (part('created_at') === null) return `{${distinctId}}`;
    return `{"uuid":${part('uuid')},"created_at":${part('created_at')},"properties":${documentOf(part('properties'))},${distinctId}}`;
  },
  actor(part, _, distinctIds) {
    const ids = JSON.stringify(distinctIds.get(part('id') ?? '') ?? []);
    return `{"id":${part('id')},"created_at":${part('created_at')},"is_identified":${part('is_identified')},"distinct_ids":${ids},"properties":${documentOf(part('properties'))}}`;
  },
  'display name'(part, { keys }) {
    return `{${Object.keys(keys)
      .map((key) => `${JSON.stringify(key)}:${part(key) ?? 'null'}`)
      .join(',')}}`;
  },
};

/** The ids of the persons that an answer shows, as JSON texts. */
export function shownPersons({ columns, rows }: Pick<QueryAnswer, 'columns' | 'rows'>): string[] {
  const composite = columns
    .map((one) => one.from)
    .find((from) => typeof from === 'object' && from.of === 'actor');
  if (typeof composite !== 'object') return [];
  return rows.map((row) => row[composite.keys.id as number] as string);
}
