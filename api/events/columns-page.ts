import { z } from 'zod';
import { storedBefore } from '../../db/horizon.ts';
import type { Pool } from '../../db/pool.ts';
import type { Asker } from '../../db/turns.ts';
import { ask, type QueryAnswer, type QueryDependencies } from '../../queries/commands/ask.ts';
import type { EventConditions } from '../../queries/rules/request.ts';
import { csvLine, withoutFormula } from '../../values/csv.ts';
import { inPieces } from '../pieces.ts';
import { shownValue } from '../queries/answer.ts';
import { behind, type ListQuery, type NextPage, spanOf } from './list-query.ts';

/** A page of what `select` names. */
export const columnsPage = z
  .object({
    columns: z.array(z.string()),
    types: z.array(z.string()),
    next: z.string().nullable(),
    hasMore: z.boolean(),
    results: z
      .array(z.array(z.unknown()))
      .meta({ description: 'One list for each row, in the order of `columns`.' }),
  })
  .meta({ id: 'EventColumns' });

/** Reads a page of expressions over events. */
export async function readColumns(
  deps: QueryDependencies & { pool: Pool },
  asker: Asker,
  conditions: EventConditions,
  query: ListQuery,
  { before, limit }: { before: string; limit: number },
): Promise<{ answer: QueryAnswer; next: NextPage | null }> {
  const { after, offset = 0 } = query;
  const { ascending, position, ...bounds } = spanOf(query, before);
  const stored = query.stored_before ?? (await storedBefore(deps.pool));
  const answer = await ask(deps, asker, {
    ...{ kind: 'EventsQuery', ...conditions, select: query.select?.length ? query.select : ['*'] },
    span: { ...bounds, position: position && { ...position, ascending }, storedBefore: stored },
    ...{ orderBy: query.orderBy, limit, offset },
  });
  const { hasMore, place } = answer;
  const last = answer.rows.at(-1);
  if (!hasMore || !last) return { answer, next: null };
  // All pages are of the events of the first one, so relative times stay what they were.
  const pinned = { ...(after && { after }), before, stored_before: stored };
  if (!place) return { answer, next: { ...pinned, offset: String(offset + answer.rows.length) } };
  const [timestamp, uuid] = [last[place.timestamp], last[place.uuid]].map((json) =>
    JSON.parse(json as string),
  );
  return { answer, next: { ...pinned, ...behind({ timestamp, uuid }, ascending) } };
}

/** Rows as CSV, piece by piece. Lists and objects are JSON. */
export function columnsCsv(
  { columns, rows }: QueryAnswer,
  { escapesFormulas }: { escapesFormulas: boolean },
): AsyncGenerator<string> {
  const shown = escapesFormulas ? withoutFormula : (text: string) => text;
  return inPieces(csvLine(columns.map(({ name }) => shown(name))), rows, (row) =>
    csvLine(columns.map((column) => shown(cellOf(shownValue(column, row))))),
  );
}

/** The text of a JSON value in a cell. */
function cellOf(json: string): string {
  if (json === 'null') return '';
  return json.startsWith('"') ? JSON.parse(json) : json;
}
