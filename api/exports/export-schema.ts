import { z } from 'zod';
import { shownExport } from '../../exports/reads/shown-export.ts';
import type { BatchExportRow } from '../../exports/rows/batch-exports.ts';
import type { Health } from '../../exports/rows/health.ts';
import { INTERVAL_LENGTHS } from '../../intervals/index.ts';
import { MODEL_NAMES, WHOLE_QUERY } from '../../models/index.ts';
import { isIanaZone } from '../../values/zones.ts';
import { freeForm, instant, text, timestamp } from '../fields.ts';
import { changedDestination, destination, newDestination } from './destination-schema.ts';
import { type RunView, run } from './run-schema.ts';

const moment = timestamp.nullable();
const source = z.enum([...MODEL_NAMES, WHOLE_QUERY]);
const interval = z.enum([...INTERVAL_LENGTHS, 'once']).meta({
  description:
    '`once`: the batch export has no intervals and no schedule. It exports the whole result of `hogql_query` one time, ' +
    'when it is created.',
});

export const batchExport = z
  .object({
    id: z.guid(),
    team_id: z.int(),
    name: z.string(),
    model: source,
    destination: z.object({
      type: z.string(),
      config: freeForm.meta({ description: 'The configuration without its secrets.' }),
    }),
    interval,
    timezone: z.string(),
    offset_day: z.int().min(0).max(6).nullable().meta({
      description: 'The day on which weeks begin; 0 is Sunday. Null for other intervals.',
    }),
    offset_hour: z.int().min(0).max(23).nullable().meta({
      description: 'The local hour at which days and weeks begin. Null for shorter intervals.',
    }),
    paused: z.boolean(),
    created_at: timestamp,
    last_updated_at: timestamp,
    last_paused_at: moment,
    start_at: moment,
    end_at: moment,
    hogql_query: z.string().nullable(),
    schema: z
      .object({
        fields: z.array(z.object({ expression: z.string(), alias: z.string() })),
        values: freeForm,
        hogql_query: z.string(),
      })
      .nullable()
      .meta({ description: 'The columns that `hogql_query` selects, and the query in a plain form.' }),
    filters: z.array(freeForm).nullable(),
    missing: z.int().nullable().meta({
      description:
        'The number of recent intervals that ended long ago and are not exported. Null until the first check of the export.',
    }),
    lag: z
      .int()
      .nullable()
      .meta({
        description:
          'How many seconds the export is behind: from the beginning of the first interval that is not exported to the end ' +
          'of the last finished one. Null until the first check of the export.',
      }),
    latest_runs: z.array(run).meta({ description: 'The ten newest runs.' }),
  })
  .meta({ id: 'BatchExport' });
export type BatchExportView = z.output<typeof batchExport>;

export function batchExportView(
  row: BatchExportRow,
  latestRuns: RunView[],
  health?: Pick<Health, 'missing' | 'lag_seconds'>,
): BatchExportView {
  const shown = shownExport(row);
  return {
    id: row.id,
    team_id: row.project_id,
    ...shown,
    schema: shown.schema as BatchExportView['schema'],
    filters: shown.filters as BatchExportView['filters'],
    created_at: row.created_at,
    last_updated_at: row.last_updated_at,
    missing: health?.missing ?? null,
    lag: health ? Math.round(health.lag_seconds) : null,
    latest_runs: latestRuns,
  };
}

const zone = z
  .string()
  .refine(isIanaZone, {
    params: { code: 'invalid_choice' },
    error: ({ input }) => `${JSON.stringify(input)} is not a valid choice.`,
  })
  .nullable()
  .meta({ description: 'The IANA name of the time zone in which days and weeks begin. Default: `UTC`.' });

const writable = {
  model: source.nullable().meta({
    description:
      'What to export. Default: the one that `hogql_query` names, otherwise `events`. With the interval `once` it is ' +
      '`hogql`. It cannot be changed.',
  }),
  timezone: zone,
  offset_day: z
    .int()
    .min(0)
    .max(6)
    .nullable()
    .meta({ description: 'The day on which weeks begin; 0 is Sunday. Only for weeks.' }),
  offset_hour: z.int().min(0).max(23).nullable().meta({
    description: 'The local hour at which days and weeks begin. Only for days and weeks.',
  }),
  paused: z.boolean(),
  last_paused_at: instant.nullable(),
  start_at: instant.nullable().meta({
    description: 'The schedule starts no run before this time. It starts a run at the end of each interval.',
  }),
  end_at: instant.nullable().meta({ description: 'The schedule starts no run after this time.' }),
  hogql_query: z
    .string()
    .nullable()
    .meta({
      description:
        'Selects columns in place of the default ones, and the rows that pass its condition: ' +
        '`SELECT … FROM events WHERE …`. The table is the model. With the interval `once` it is any query, as in ' +
        '`POST …/query/`, and all rows of its result are exported.',
    }),
  filters: z
    .unknown()
    .optional()
    .meta({
      description: 'Only events that pass all of these filters are exported.',
      anyOf: [
        {
          type: 'array',
          items: {
            type: 'object',
            properties: {
              type: { enum: ['event', 'person', 'hogql'] },
              key: { type: 'string', description: 'The name of a property. For `hogql`, an expression.' },
              operator: { type: 'string', description: 'Default: `exact`.' },
              value: { description: 'A string, a number, a boolean, or a list of these.' },
            },
            required: ['type', 'key'],
          },
        },
        { type: 'null' },
      ],
    }),
};
const name = text(400);

export const newBatchExport = z.object({
  name,
  destination: newDestination,
  interval,
  ...z.object(writable).partial().shape,
});
/** A new export on the routes of organizations, where the body names its project. */
export const newOrganizationBatchExport = newBatchExport.extend({
  team_id: z.int().optional().meta({
    description:
      'The project. By default the only project that the key may see, or else the current project of the user.',
  }),
});
/** The body of a PUT. Keys of the destination's configuration that it leaves out keep their values. */
export const wholeBatchExport = newBatchExport.extend({ destination });
export const batchExportPatch = z
  .object({
    name,
    destination: changedDestination,
    interval,
    ...writable,
  })
  .partial();
