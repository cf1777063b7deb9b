import { z } from 'zod';
import { RESULT_FORMATS } from '../../queries/rules/result-file.ts';
import { errorBody, freeForm, timestamp } from '../fields.ts';

const MOST_TEXT = 1024 * 1024;
const MOST_LISTED = 200;
const MOST_OFFSET = 1_000_000;

const texts = z.array(z.string().max(MOST_TEXT)).max(MOST_LISTED);
const moment = z.string().max(64).nullish();
const filters = z.unknown().meta({
  description: 'Filters as everywhere: a list of conditions, or a group with `type` and `values`.',
});
const limit = z
  .int()
  .min(0)
  .nullish()
  .meta({ description: 'Rows of the page: 100 by default, 50,000 at most.' });
const offset = z.int().min(0).max(MOST_OFFSET).nullish();

/** What clients of PostHog say beside a query. Other fields are refused: a misspelt condition would otherwise show everything. */
const ignored = z
  .unknown()
  .optional()
  .transform(() => undefined)
  .meta({ description: 'Has no effect.' });
const besides = { name: ignored, tags: ignored, version: ignored, modifiers: ignored, response: ignored };

const queryFilters = z
  .strictObject({
    dateRange: z.strictObject({ date_from: moment, date_to: moment, explicitDate: ignored }).nullish().meta({
      description:
        'From `date_from` on, and before `date_to`. Dates without an offset are in the zone of the project.',
    }),
    properties: filters.optional(),
    filterTestAccounts: z.boolean().nullish(),
  })
  .meta({ id: 'QueryFilters', description: 'What stands for `{filters}` in the text of a query.' });

const hogQLQuery = z
  .strictObject({
    kind: z.literal('HogQLQuery'),
    query: z.string().min(1).max(MOST_TEXT).meta({ description: 'A SELECT in HogQL.' }),
    values: z.record(z.string().max(400), z.unknown()).nullish().meta({
      description:
        'What stands for placeholders such as `{name}`: texts, numbers, true, false, null, and lists of these.',
    }),
    filters: queryFilters.nullish(),
    explain: z.boolean().nullish().meta({ description: 'The same as `explain` beside the query.' }),
    variables: ignored,
    ...besides,
  })
  .meta({ id: 'HogQLQuery' });

const eventsQuery = z
  .strictObject({
    kind: z.literal('EventsQuery'),
    select: texts.min(1).meta({
      description:
        'Expressions in HogQL. `*` is the event, `person` and `person_display_name` are its person. With aggregates, the other columns are the groups.',
    }),
    where: texts
      .nullish()
      .meta({ description: 'Conditions in HogQL. Those with aggregates apply to groups.' }),
    event: z.string().max(400).nullish(),
    events: z.array(z.string().max(400)).max(1_000).nullish(),
    personId: z.guid().nullish(),
    actionId: z.int().min(1).max(2_147_483_647).nullish(),
    properties: filters.optional(),
    fixedProperties: filters.optional(),
    filterTestAccounts: z.boolean().nullish(),
    after: moment.meta({ description: 'Only events after this time. Default: `-24h`. `all` is no bound.' }),
    before: moment.meta({ description: 'Only events before this time. Default: five seconds from now.' }),
    orderBy: texts.nullish().meta({ description: 'Expressions in HogQL, with `DESC` behind or `-` before.' }),
    limit,
    offset,
    ...besides,
  })
  .meta({ id: 'EventsQuery' });

const actorsQuery = z
  .strictObject({
    kind: z.literal('ActorsQuery'),
    select: texts.nullish().meta({
      description:
        'Expressions in HogQL over persons. Default: `person`, `id`, `created_at`, `person.$delete`.',
    }),
    search: z.string().max(400).nullish().meta({
      description:
        'Only persons with this text in their email, name, username or id, or in one of their distinct ids.',
    }),
    properties: filters.optional(),
    fixedProperties: filters.optional(),
    orderBy: texts.nullish(),
    limit,
    offset,
    source: z
      .null('A list of persons by a query about events is not supported: select persons in a HogQLQuery.')
      .optional(),
    ...besides,
  })
  .meta({ id: 'ActorsQuery' });

export const format = z.enum(['json', ...RESULT_FORMATS]).meta({
  description:
    '`csv`, `jsonl`, `parquet` and `arrow` answer with a file that has all rows of a HogQLQuery or an EventsQuery, as `Accept` with ' +
    'their media types does. Default: `json`.',
});

export const queryBody = z.object({
  query: z.discriminatedUnion('kind', [hogQLQuery, eventsQuery, actorsQuery], {
    error: ({ code }) =>
      code === 'invalid_union' ? 'The kind of a query is HogQLQuery, EventsQuery or ActorsQuery.' : undefined,
  }),
  explain: z
    .boolean()
    .default(false)
    .meta({ description: 'Whether the answer says how Postgres runs the query.' }),
  format: format.optional(),
  async: z.boolean().default(false).meta({
    description:
      'Whether the query is answered in the background: the answer is 202, with the id to ask for it. A file cannot be.',
  }),
  client_query_id: z.string().max(400).nullish().meta({
    description: 'The id of a query in the background. By default it gets a new one.',
  }),
  refresh: z.unknown().optional().meta({
    description:
      '`force_async`, `async` and `lazy_async` are the same as `async`. Everything else is ignored: every answer is new.',
  }),
});

export const queryAnswer = z
  .object({
    columns: z.array(z.string()),
    types: z.array(z.unknown()).meta({
      description:
        'The types, as ClickHouse names them: pairs of name and type for a HogQLQuery, types otherwise.',
    }),
    hogql: z.string().meta({ description: 'The query as it was run.' }),
    timings: z.array(z.object({ k: z.string(), t: z.number() })).meta({
      description:
        'Seconds for reading the query (`compile`), waiting for a turn (`wait`) and running it (`run`).',
    }),
    hasMore: z.boolean().optional().meta({ description: 'Absent if the query has a LIMIT.' }),
    limit: z.int().optional(),
    offset: z.int().optional(),
    explain: z.array(z.string()).optional(),
    query: freeForm.optional(),
    results: z
      .array(z.array(z.unknown()))
      .meta({ description: 'One list for each row, in the order of `columns`.' }),
  })
  .meta({ id: 'QueryAnswer' });

const moments = { start_time: timestamp, pickup_time: timestamp.nullable(), end_time: timestamp.nullable() };

/** A query in the background, and its answer when it is there. */
export const queryStatus = z
  .object({
    query_status: z.object({
      id: z.string(),
      team_id: z.int(),
      query_async: z.literal(true),
      complete: z.boolean().meta({ description: 'Whether the query has ended.' }),
      error: z.boolean(),
      error_message: z.string().nullable(),
      ...moments,
      expiration_time: timestamp.meta({ description: 'Until when the query can be asked for.' }),
      results: freeForm.nullable().meta({ description: 'The answer, as a query without `async` has it.' }),
    }),
  })
  .meta({ id: 'QueryStatus' });

/** What is wrong with a request, or with the query in the background that it asks for. */
export const failedQuery = errorBody
  .extend({ query_status: queryStatus.shape.query_status.optional() })
  .meta({ id: 'FailedQuery' });
