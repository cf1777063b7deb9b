import { z } from 'zod';
import type { EventPosition } from '../../db/events.ts';
import { Refusal, refuse } from '../../refusals.ts';
import { eventMoment } from '../moment.ts';
import { eventTime } from './event-schema.ts';

export const DEFAULT_LIMIT = 100;
export const DEFAULT_CSV_LIMIT = 3_500;
export const MAX_LIMIT = 50_000;
const MAX_OFFSET = 50_000;
/** Groups can only be paged by their number. */
const MAX_OFFSET_OF_GROUPS = 1_000_000;
const MAX_TEXTS = 200;

const whole = (max: number, message: string) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'A valid integer is required.')
    .transform(Number)
    .refine((value) => value <= max, message)
    .optional();

export const includePerson = z
  .enum(['true', 'false', 'True', 'False'])
  .optional()
  .meta({ description: 'Whether each event contains its person. Default: `false`.' });

export const format = z
  .enum(['json', 'csv'])
  .optional()
  .meta({ description: '`csv` answers as `Accept: text/csv` does.' });

export const escapeFormulas = z.enum(['true', 'false', 'True', 'False']).optional().meta({
  description:
    'Whether cells of a CSV that a spreadsheet would take for formulas begin with a quote mark. Default: `false`.',
});

const ORDERS = ['["-timestamp"]', '["timestamp"]'] as const;

const given = z.union([z.string(), z.array(z.string())]).optional();

/** A list of expressions: a JSON list of texts, or the parameter again for each. */
export const expressions = given.transform((value, context): string[] | undefined => {
  if (value === undefined) return undefined;
  const [only] = Array.isArray(value) ? value : [value];
  const list = Array.isArray(value) && value.length > 1 ? value : listOf(only ?? '');
  if (list.length <= MAX_TEXTS) return list;
  context.addIssue({ code: 'custom', message: `At most ${MAX_TEXTS} expressions are allowed.` });
  return z.NEVER;
});

/** Reads a JSON list of texts. Any other text is one expression. */
function listOf(text: string): string[] {
  const json = jsonOf(text);
  return Array.isArray(json) && json.every((one) => typeof one === 'string') ? json : [text];
}

/** Reads filters: a JSON list, a group, an old dictionary, or the parameter again for each condition. */
export const filters = given.transform((value, context): unknown => {
  if (value === undefined || value === '') return undefined;
  const documents = (Array.isArray(value) ? value : [value]).map(jsonOf);
  if (documents.every((one) => typeof one === 'object' && one !== null)) {
    return documents.length === 1 ? documents[0] : documents.flat();
  }
  context.addIssue({ code: 'custom', message: 'Properties are unparsable!' });
  return z.NEVER;
});

/** Parses JSON. Undefined: the text is none. */
function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const actionId = z
  .string()
  .regex(/^\d{1,9}$/, 'A valid integer is required.')
  .transform(Number)
  .optional()
  .meta({ description: 'Only events that match this action.' });

export const listQuery = z
  .strictObject({
    event: z.string().optional().meta({ description: 'Only events with this name.' }),
    distinct_id: z.string().optional().meta({ description: 'Only events with this distinct_id.' }),
    person_id: z.string().optional().meta({ description: 'Only events of the person with this uuid.' }),
    action_id: actionId,
    properties: filters.meta({
      description:
        'Filters as JSON: a list of conditions, or a group with `type` and `values`. Conditions can be about the event, its person, groups and cohorts.',
    }),
    where: expressions.meta({
      description: 'Conditions in HogQL, as a JSON list or repeated: `["properties.price > 10"]`.',
    }),
    select: expressions.meta({
      description:
        'Expressions in HogQL, as a JSON list or repeated: `["event", "count()"]`. The answer then has `columns`, `types` and rows. `*` is the event.',
    }),
    include_person: includePerson,
    after: eventMoment.meta({
      description: 'Only events after this time, in ISO 8601 or relative such as `-7d`.',
    }),
    before: eventMoment.meta({
      description: 'Only events before this time. Default: five seconds from now.',
    }),
    after_uuid: z.guid().optional().meta({
      description: 'The last event of the previous page, at the time `after`. The link `next` contains it.',
    }),
    before_uuid: z.guid().optional().meta({
      description: 'The last event of the previous page, at the time `before`. The link `next` contains it.',
    }),
    stored_before: eventMoment.meta({
      description:
        'Only events that were stored before this time. With `select`, the link `next` contains it, so that all pages are of the same events.',
    }),
    limit: whole(Number.MAX_SAFE_INTEGER, '').meta({
      description: `Rows per page: ${DEFAULT_LIMIT} by default (${DEFAULT_CSV_LIMIT} in a CSV), at most ${MAX_LIMIT}.`,
    }),
    offset: whole(MAX_OFFSET_OF_GROUPS, `Max supported offset value is ${MAX_OFFSET_OF_GROUPS}.`).meta({
      description: `Deprecated. Follow \`next\` instead. At most ${MAX_OFFSET} without \`select\`.`,
    }),
    orderBy: expressions.meta({
      description:
        'A JSON list: `["-timestamp"]` (newest first, the default) or `["timestamp"]`. With `select`, expressions in HogQL.',
    }),
    format,
    escape_formulas: escapeFormulas,
  })
  .superRefine((query, context) => {
    const issue = (path: string, message: string) =>
      context.addIssue({ code: 'custom', message, path: [path] });
    for (const bound of ['after', 'before'] as const) {
      if (query[`${bound}_uuid`] === undefined || query[bound] !== undefined) continue;
      issue(`${bound}_uuid`, `\`${bound}_uuid\` needs \`${bound}\`, the time of the event that it names.`);
    }
    if (query.select !== undefined) return;
    if (
      query.orderBy !== undefined &&
      !(ORDERS as readonly string[]).includes(JSON.stringify(query.orderBy))
    ) {
      issue('orderBy', `"${query.orderBy.join(', ')}" is not a valid choice.`);
    }
    if (query.stored_before !== undefined) issue('stored_before', '`stored_before` needs `select`.');
    if ((query.offset ?? 0) <= MAX_OFFSET) return;
    issue('offset', `Offset is deprecated. Max supported offset value is ${MAX_OFFSET}.`);
  });
export type ListQuery = z.output<typeof listQuery>;

export const isTrue = (value: string | undefined): boolean => value?.toLowerCase() === 'true';
/** Whether the order is that of time, oldest first. */
const isAscending = ({ orderBy }: ListQuery): boolean => JSON.stringify(orderBy) === ORDERS[1];

/** The part of all events that a page reads, and their order. */
export function spanOf(query: ListQuery, before: string) {
  const ascending = isAscending(query);
  const [bound, uuid] = ascending ? [query.after, query.after_uuid] : [query.before, query.before_uuid];
  const position: EventPosition | undefined = bound && uuid ? { timestamp: bound, uuid } : undefined;
  return {
    ...{ ascending, position },
    // At exactly the time of a position there may be more events, so it replaces the bound.
    after: position && ascending ? undefined : query.after,
    before: position && !ascending ? undefined : before,
  };
}

/** Names the parameters of the request in the refusals of a query. */
export async function parameters<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    if (!(error instanceof Refusal) || error.kind !== 'invalid') throw error;
    const { message, code, reason } = error;
    const field = error.field === 'query' ? null : (error.field?.replace(/^query__/, '') ?? null);
    throw refuse.invalid(field, message, { code, reason });
  }
}

/** What a link to the next page says. */
export type NextPage = Record<string, string>;

/** The next page of a list by time begins behind this event. */
export function behind({ timestamp, uuid }: EventPosition, ascending: boolean): NextPage {
  const bound = ascending ? 'after' : 'before';
  return { [bound]: eventTime(timestamp), [`${bound}_uuid`]: uuid };
}
